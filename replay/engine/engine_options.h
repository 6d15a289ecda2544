#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "replay/engine/drive_model.h"
#include "replay/engine/engine.h"
#include "replay/target/target.h"

namespace blktape {

// io_uring's submission queue has 32768 entries, one of them for our own use.
inline constexpr uint32_t kMaxEngineDepth = 32767;

// What an engine is opened with. Everything pointed to must outlive the engine.
struct EngineOptions {
  // EngineRequest.target is an index into these. The simulated and the null engine never touch
  // them and may be opened without any.
  std::vector<const Target*> targets;
  uint32_t depth = 32;
  Clock* clock = Clock::Monotonic();

  // Where the buffers of all requests lie, if the caller keeps them in one place, aligned to 4096.
  // io_uring registers it, so that pages are not pinned anew for each request; a request whose
  // buffer lies elsewhere still works.
  std::span<std::byte> arena;

  // io_uring only, and only where they help: a kernel thread that submits; completions polled
  // instead of interrupting (needs a driver with poll queues).
  bool submission_thread = false;
  bool polled_completion = false;

  // The simulated engine only. The service of a request is what `script` says, if there is one,
  // else what the drive model says.
  DriveModel drive;
  // Returns how long the request takes from its submission on, and its outcome.
  struct ScriptedService {
    int64_t service_ns = 0;
    uint32_t error = 0;
  };
  std::function<ScriptedService(const EngineRequest&)> script;
};

}  // namespace blktape
