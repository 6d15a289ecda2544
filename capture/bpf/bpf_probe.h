#pragma once

#include <optional>
#include <string>

namespace blktape {

// Why what BPF programs see on this kernel cannot be relied on to be all, or nothing if it can. A
// kernel that lets root load programs on tracepoints but refuses (EPERM) ones at the entry of
// functions has been changed to guard tasks of its own against BPF: met in a micro VM, where no
// program of any kind ran while an agent of the VM was current. A completion whose interrupt fell
// there was missing, one in some ten thousand. Means something only to who may load programs.
std::optional<std::string> WhyBpfMayMissEvents();

// Whether tasks that run the programs of tracepoints can be preempted, so that the kernel may find
// a program running already and not run it. True from Linux 7.0 on; nothing but the version tells.
bool ProgramsArePreemptible();

}  // namespace blktape
