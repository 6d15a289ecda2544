#pragma once

#include <optional>
#include <string>

namespace blktape {

// The reason why BPF programs may miss events on this kernel; absent if they see all events. A
// kernel that lets root load programs on tracepoints, but refuses (EPERM) programs at the entry of
// functions, has been changed to protect some of its tasks from BPF. This was seen in a micro VM,
// where no program ran while an agent of the VM was the current task. Completions whose interrupt
// came at that time were missing, about one in ten thousand. The result is meaningful only if the
// caller may load programs.
std::optional<std::string> WhyBpfMayMissEvents();

// Whether a task that runs a tracepoint's program can be preempted. If so, the kernel may skip a
// program because it is already running. True from Linux 7.0; only the version shows this.
bool ProgramsArePreemptible();

}  // namespace blktape
