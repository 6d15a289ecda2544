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

// io_uring's submission queue has at most 32768 entries; the engine uses one of them itself.
inline constexpr uint32_t kMaxEngineDepth = 32767;
// From the submission of a flush until the drive has it. Half of them had it 18 us after it, on a
// machine of two processors, where a program's own flush took 6 us; holding back for 15, 25 or 50
// us made no difference to what a replay of its own recording found.
inline constexpr int64_t kFlushTakesNs = 25'000;

// Options for opening an engine. All pointers must stay valid while the engine exists.
struct EngineOptions {
  // EngineRequest.target is an index into these. The simulated and the null engine never touch
  // targets and may be opened without any.
  std::vector<const Target*> targets;
  uint32_t depth = 32;
  Clock* clock = Clock::Monotonic();

  // The memory of all request buffers, aligned to 4096, if the caller keeps them in one place.
  // io_uring registers it, so that the kernel does not pin pages for each request. A request with a
  // buffer elsewhere still works.
  std::span<std::byte> arena;

  // Whether an I/O submitted after a flush of its block device gets to the drive after it, too, for
  // which it may be held back for kFlushTakesNs. The kernel hands a flush to a worker, where a read
  // or write is issued directly, and would be overtaken by what follows it closely. For requests
  // that have their times; one engine's, not those of several threads.
  bool flushes_keep_their_place = false;

  // For io_uring only: a kernel thread that submits; completions by polling instead of interrupts
  // (needs a driver with poll queues).
  bool submission_thread = false;
  bool polled_completion = false;

  // For the simulated engine only. `script`, if there is one, decides how a request is served;
  // otherwise the drive model does.
  DriveModel drive;
  // Returns the request's duration from its submission, and its outcome.
  struct ScriptedService {
    int64_t service_ns = 0;
    uint32_t error = 0;
  };
  std::function<ScriptedService(const EngineRequest&)> script;
};

}  // namespace blktape
