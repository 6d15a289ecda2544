#pragma once

#include <vector>

#include "base/status.h"

namespace blktape {

// Takes every capability but `kept` (CAP_... of linux/capability.h) from the calling thread, for
// good, and lets no program it might run gain any. Threads it starts later have no more; others
// that run already are not touched. A user without capabilities gets ok as well.
Status DropCapabilities(const std::vector<int>& kept = {});

// Whether the calling thread has this capability in effect.
bool HasCapability(int capability);

// Refuses (EPERM), for all threads of this process and for good, every system call but those that a
// running recording needs: files, memory, threads, signals, time, local sockets, maps of BPF. So
// neither programs, io_uring, mounts, modules, other processes' memory and descriptors, users,
// sockets of a network, BPF programs nor input for a terminal. kUnavailable where the kernel has no
// seccomp, else the failure with which a rule was not taken; then nothing is refused.
Status ForbidUnusedSystemCalls();

}  // namespace blktape
