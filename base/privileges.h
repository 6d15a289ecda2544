#pragma once

#include <vector>

#include "base/status.h"

namespace blktape {

// Permanently drops every capability except `kept` (CAP_... of linux/capability.h) from the calling
// thread, and keeps programs it may run from gaining any. Threads that it starts later inherit
// this; threads that run already are not changed. Also returns ok if there were no capabilities to
// drop.
Status DropCapabilities(const std::vector<int>& kept = {});

// Whether this capability is in the calling thread's effective set.
bool HasCapability(int capability);

// Permanently forbids (EPERM) every system call that a running recording does not need, for all
// threads of this process. Allowed are files, memory, threads, signals, time, local sockets and BPF
// maps. Forbidden are, among others: running programs, io_uring, mounts, modules, memory and
// descriptors of other processes, changing users, network sockets, loading BPF programs and pushing
// input into a terminal. kUnavailable if the kernel has no seccomp; another error if a rule could
// not be added. After a failure nothing is forbidden.
Status ForbidUnusedSystemCalls();

}  // namespace blktape
