#include "replay/plan/schedule.h"

#include <algorithm>
#include <cmath>

#include "base/saturating.h"

namespace blktape {

int64_t Schedule::ScaleNs(int64_t ns) const {
  // Exact at the original speed: a double holds no more than 104 days to the nanosecond.
  if (speed_ == 1.0) return std::clamp(ns, -kFarthestNs, kFarthestNs);
  const long double scaled_ns = static_cast<long double>(ns) / speed_;
  constexpr auto kFarthest = static_cast<long double>(kFarthestNs);
  return std::llround(std::clamp(scaled_ns, -kFarthest, kFarthest));
}

int64_t Schedule::Advance(const IoRecord& io) {
  const std::optional<int64_t> arrival_ns = io.arrival_ns();
  last_cut_ns_ = 0;
  if (!arrival_ns) return due_ns_;
  if (!first_ns_) {
    first_ns_ = arrival_ns;
    busy_until_ns_ = *arrival_ns;
  }
  const int64_t idle_ns = SaturatingSubtract(*arrival_ns, busy_until_ns_);
  last_cut_ns_ = idle_cap_ns_ ? std::max<int64_t>(0, idle_ns - *idle_cap_ns_) : 0;
  idle_cut_ns_ = SaturatingAdd(idle_cut_ns_, last_cut_ns_);
  busy_until_ns_ = std::max({busy_until_ns_, *arrival_ns, io.complete_ns.value_or(*arrival_ns)});
  due_ns_ = ScaleNs(SaturatingSubtract(SaturatingSubtract(*arrival_ns, *first_ns_), idle_cut_ns_));
  return due_ns_;
}

}  // namespace blktape
