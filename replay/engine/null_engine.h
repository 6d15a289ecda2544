#pragma once

#include <memory>

#include "replay/engine/engine.h"
#include "replay/engine/engine_options.h"

namespace blktape {

// Completes every request at once and does no I/O. Measures the replayer's own cost.
std::unique_ptr<Engine> MakeNullEngine(const EngineOptions& options);

}  // namespace blktape
