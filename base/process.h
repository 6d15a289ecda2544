#pragma once

#include <string>
#include <string_view>

namespace blktape {

// "PID-STARTTIME" of this process: unlike a pid alone, never the name of another process later.
// STARTTIME is field 22 of /proc/PID/stat, clock ticks since boot (proc(5)).
std::string OwnPidAndStart();
// Whether the process of that name still runs.
bool ProcessLives(std::string_view pid_and_start);

}  // namespace blktape
