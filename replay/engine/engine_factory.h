#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "replay/engine/engine.h"
#include "replay/engine/engine_options.h"

namespace blktape {

// Opens the engine called "io_uring", "libaio", "simulated" or "null". kInvalidArgument for any
// other name ("auto" is resolved by engine_probe.h), kUnavailable if this kernel refuses the
// engine; the message says what to do. The engine belongs to the thread that first submits or
// reaps.
Result<std::unique_ptr<Engine>> OpenEngine(std::string_view name, const EngineOptions& options);

}  // namespace blktape
