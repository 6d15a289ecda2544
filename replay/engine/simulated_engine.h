#pragma once

#include <memory>

#include "replay/engine/engine.h"
#include "replay/engine/engine_options.h"

namespace blktape {

// A simulated drive: completion times come from options.script or options.drive. complete_ns is the
// model's completion time, not the time of reaping. Reap waits by sleeping on the clock, so that
// with a FakeClock simulated time costs only the computation.
std::unique_ptr<Engine> MakeSimulatedEngine(const EngineOptions& options);

}  // namespace blktape
