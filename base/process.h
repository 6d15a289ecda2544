#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace blktape {

// "PID-STARTTIME" of this process. Unlike a pid alone, it never names another process later.
// STARTTIME is field 22 of /proc/PID/stat, in clock ticks since boot (proc(5)).
std::string OwnPidAndStart();
// Whether the process with this name still runs.
bool ProcessLives(std::string_view pid_and_start);

// The PID namespace of this process, as bpf_get_ns_current_pid_tgid needs it. Absent in the initial
// namespace, where the kernel's ids are also those of user space.
struct PidNamespace {
  uint64_t device = 0;  // kernel dev_t
  uint64_t inode = 0;
};
std::optional<PidNamespace> LocalPidNamespace();

// Raises the soft limit of open files (RLIMIT_NOFILE) to the hard limit: a recorder opens several
// files per CPU. Call RestoreOpenFilesLimit() before running another program: some programs fail
// when they get a descriptor above 1,023.
void RaiseOpenFilesLimit();
// Restores the former limit. May be called between fork and exec.
void RestoreOpenFilesLimit();

}  // namespace blktape
