#pragma once

#include <atomic>

namespace blktape {

// As under nohup: then a terminal that goes away ends nothing.
bool HangupIsIgnored();

// From the first call on SIGINT, SIGTERM, SIGQUIT and, unless it is ignored, SIGHUP set the flag it
// returns, instead of ending the process; a second one of them ends it. SIGPIPE is ignored. Lives
// for ever.
const std::atomic<bool>& StopOnSignals();

}  // namespace blktape
