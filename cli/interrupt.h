#pragma once

#include <atomic>

namespace blktape {

// From the first call on SIGINT and SIGTERM set the flag it returns, instead of ending the process;
// a second one of them ends it. Lives for ever.
const std::atomic<bool>& StopOnSignals();

}  // namespace blktape
