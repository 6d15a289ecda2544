#pragma once

#include <memory>

#include "replay/engine/engine.h"
#include "replay/engine/engine_options.h"

namespace blktape {

// A drive that exists on a clock only: completion times come from options.script or options.drive.
// complete_ns is when the model says so, whenever it was reaped. Waiting in Reap sleeps on the
// clock, so that on a FakeClock a day of work passes as fast as the machine can count.
std::unique_ptr<Engine> MakeSimulatedEngine(const EngineOptions& options);

}  // namespace blktape
