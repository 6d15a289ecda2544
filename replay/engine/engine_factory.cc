#include "replay/engine/engine_factory.h"

#include <string>

#include "replay/engine/io_uring_engine.h"
#include "replay/engine/libaio_engine.h"
#include "replay/engine/null_engine.h"
#include "replay/engine/simulated_engine.h"

namespace blktape {

Result<std::unique_ptr<Engine>> OpenEngine(std::string_view name, const EngineOptions& options) {
  if (options.depth == 0 || options.depth > kMaxEngineDepth) {
    return Status(StatusCode::kInvalidArgument,
                  "engine: the depth must be 1 to " + std::to_string(kMaxEngineDepth));
  }
  if (name == "null") return MakeNullEngine(options);
  if (name == "simulated") return MakeSimulatedEngine(options);
  if (name == "io_uring") return MakeIoUringEngine(options);
  if (name == "libaio") return MakeLibaioEngine(options);
  return Status(StatusCode::kInvalidArgument,
                "no engine is called \"" + std::string(name) +
                    "\"\n  try:  io_uring, libaio, simulated or null");
}

}  // namespace blktape
