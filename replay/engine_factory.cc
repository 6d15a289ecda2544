#include "replay/engine_factory.h"

#include "replay/null_engine.h"
#include "replay/simulated_engine.h"

namespace blktape {

Result<std::unique_ptr<Engine>> OpenEngine(std::string_view name, const EngineOptions& options) {
  if (options.depth == 0) return Status(StatusCode::kInvalidArgument, "engine: depth must be > 0");
  if (name == "null") return MakeNullEngine(options);
  if (name == "simulated") return MakeSimulatedEngine(options);
  return Status(StatusCode::kInvalidArgument,
                "no engine is called \"" + std::string(name) +
                    "\"\n  try:  io_uring, libaio, simulated or null");
}

}  // namespace blktape
