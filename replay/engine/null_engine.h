#pragma once

#include <memory>

#include "replay/engine/engine.h"
#include "replay/engine/engine_options.h"

namespace blktape {

// Completes every request at once and touches nothing: what remains is the replayer's own cost.
std::unique_ptr<Engine> MakeNullEngine(const EngineOptions& options);

}  // namespace blktape
