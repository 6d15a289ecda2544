#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "replay/issue/lane_progress.h"
#include "replay/issue/turn.h"
#include "replay/plan/timing_rule.h"

namespace blktape {

// May be set by other threads at any time; all but the first may be null.
struct StopFlags {
  const std::atomic<bool>* by_user = nullptr;
  const std::atomic<bool>* by_failure = nullptr;  // the result cannot be kept any more
  std::atomic<bool>* by_lane = nullptr;  // of several issuers one has stopped before its end
};

// How an issuer issues. What it points to outlives the issuer.
struct IssuerOptions {
  TimingRule rule = TimingRule::kTimed;
  uint32_t depth = 1;  // at most the engine's
  // Before a due time the thread sleeps until so long before it, then polls; until longer before it
  // where its sleeps end late, see SpinTime. 0 with a clock that moves only when slept on.
  int64_t spin_ns = 150'000;
  // The same while requests are out, at most spin_ns: the kernel completes them by threads and soft
  // interrupts of this CPU too, which a real-time thread that polls keeps waiting.
  int64_t spin_in_flight_ns = 50'000;
  // Completions are polled for until so long after a submission; then the thread sleeps until the
  // kernel wakes it, which is part of the latency it sees (IssueTotals::wake_ups). Takes a CPU of
  // its own. 0 with a clock that moves only when slept on.
  int64_t poll_ns = 0;
  uint32_t batch = 1;  // at most so many a submission
  // A buffer of so many bytes for each slot of the depth, for reads that come without one and fit.
  // The slot that became free last is taken first: a few buffers stay in the processor's cache,
  // through which those that are handed out ahead only pass.
  std::byte* read_buffers = nullptr;
  uint64_t read_buffer_bytes = 0;
  // A request that conflicts with an earlier one that is out waits for it, whatever the rule.
  bool order_overlaps = true;
  bool stop_on_error = true;
  // Nothing is issued later than this after the start.
  std::optional<int64_t> duration_ns = {};
  // Where several issuers share a plan: all of them, and which this one is. Not with kMaxOrder or
  // kClosed, nor with think time at a queue depth.
  std::span<LaneProgress> lanes = {};
  uint32_t lane = 0;
  // Of a ReserveThread, which must stand by then; else null. kTimed only, without `lanes`.
  Turn* turn = nullptr;
  // Told when the thread stops or resumes sleeping now and then; may be empty.
  std::function<void(bool never_sleeps)> on_saturation = {};
};

}  // namespace blktape
