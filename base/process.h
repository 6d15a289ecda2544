#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace blktape {

// "PID-STARTTIME" of this process: unlike a pid alone, never the name of another process later.
// STARTTIME is field 22 of /proc/PID/stat, clock ticks since boot (proc(5)).
std::string OwnPidAndStart();
// Whether the process of that name still runs.
bool ProcessLives(std::string_view pid_and_start);

// The PID namespace of this process, as bpf_get_ns_current_pid_tgid wants it. Absent in the first
// one, where the kernel's ids are ours.
struct PidNamespace {
  uint64_t device = 0;  // kernel dev_t
  uint64_t inode = 0;
};
std::optional<PidNamespace> LocalPidNamespace();

// Lets this process open as many files as it may at most (RLIMIT_NOFILE): a recorder has some for
// each CPU of the machine. A program it runs should have the limit of before: some end where they
// get a descriptor above 1,023.
void RaiseOpenFilesLimit();
// Takes that back; may be called between fork and exec.
void RestoreOpenFilesLimit();

}  // namespace blktape
