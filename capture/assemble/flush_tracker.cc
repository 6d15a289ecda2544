#include "capture/assemble/flush_tracker.h"

#include <algorithm>

namespace blktape {

void FlushTracker::FlaggedQueued(std::optional<uint64_t> sector, int64_t ns, bool own) {
  if (flagged_.size() >= kWaitingMax) flagged_.erase(flagged_.begin());
  flagged_.push_back({.sector = sector, .queue_ns = ns, .own = own});
}

void FlushTracker::FlaggedIssued(uint64_t sector, bool sequenced) {
  for (Flagged& write : flagged_) {
    if (write.sector != sector) continue;
    write.sequenced = sequenced;
    return;
  }
}

void FlushTracker::FlaggedCompleted(uint64_t sector) {
  const auto it = std::find_if(flagged_.begin(), flagged_.end(), [&](const Flagged& write) {
    return write.sector == sector && !write.sequenced;
  });
  if (it != flagged_.end()) flagged_.erase(it);
}

bool FlushTracker::SequenceCompleted(uint64_t sector) {
  auto it = std::ranges::find_if(
      flagged_, [&](const Flagged& write) { return write.sector == sector && write.sequenced; });
  if (it == flagged_.end()) {
    it = std::ranges::find_if(flagged_, [](const Flagged& write) { return !write.sector; });
  }
  if (it != flagged_.end()) {
    flagged_.erase(it);
    return false;
  }
  if (served_ > 0) {
    --served_;
    return false;
  }
  return !asked_.empty();
}

FlushTracker::Cause FlushTracker::Issue(int64_t ns) {
  std::erase_if(flagged_, [&](const Flagged& write) { return ns - write.queue_ns > kFlaggedNs; });
  Cause cause;
  while (!asked_.empty()) {
    cause.asked.push_back(asked_.front());
    asked_.pop_front();
  }
  if (!cause.asked.empty()) return cause;
  if (!flagged_.empty()) {
    cause.derived = true;
    cause.own =
        std::all_of(flagged_.begin(), flagged_.end(), [](const Flagged& w) { return w.own; });
    return cause;
  }
  // Nothing is waiting: an earlier flush of another hardware queue was credited with what this one
  // serves.
  for (size_t i = 0; i < in_flight_.size(); ++i) {
    std::vector<AskedFlush>& others = in_flight_[i].asked;
    if (others.size() < 2) continue;
    cause.asked.push_back(others.back());
    others.pop_back();
    return cause;
  }
  return cause;
}

}  // namespace blktape
