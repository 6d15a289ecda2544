#pragma once

namespace blktape {

// What decides when an I/O of a replay is due.
enum class TimingRule {
  kTimed,       // due = start + (arrival - first) / speed
  kClosed,      // due = completion of what it waited for in the recording + think time / speed
  kMaxOrder,    // as soon as all that had completed before it was queued in the recording has
                // completed
  kQueueDepth,  // as fast as goes with at most queue_depth in flight
};

// Whether each I/O has a time of its own at which it is to be issued: then the host can be late.
inline bool IsPunctual(TimingRule rule) {
  return rule == TimingRule::kTimed || rule == TimingRule::kClosed;
}

}  // namespace blktape
