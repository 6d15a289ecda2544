#pragma once

namespace blktape {

// What decides when an I/O of a replay is due.
enum class TimingRule {
  kTimed,       // due = start + (arrival - first) / speed
  kMaxOrder,    // as soon as all that had completed before it was queued in the recording has
                // completed
  kQueueDepth,  // as fast as goes with at most queue_depth in flight
};

}  // namespace blktape
