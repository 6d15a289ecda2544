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

// Refuses (EPERM), for all threads of this process and for good: running programs, mounting,
// loading modules, tracing other processes, changing users, and sockets other than local ones.
// kUnavailable where the kernel has no seccomp.
Status ForbidUnusedSystemCalls();

}  // namespace blktape
