#include "replay/schedule.h"

#include <algorithm>
#include <cmath>

namespace blktape {

int64_t Schedule::ScaleNs(int64_t ns) const {
  // Exact at the original speed: a double holds no more than 104 days to the nanosecond.
  if (speed_ == 1.0) return ns;
  return std::llround(static_cast<long double>(ns) / speed_);
}

int64_t Schedule::Advance(const IoRecord& io) {
  const std::optional<int64_t> arrival_ns = io.arrival_ns();
  if (!arrival_ns) return due_ns_;
  if (!first_ns_) {
    first_ns_ = arrival_ns;
    busy_until_ns_ = *arrival_ns;
  }
  if (idle_cap_ns_ && *arrival_ns - busy_until_ns_ > *idle_cap_ns_) {
    idle_cut_ns_ += *arrival_ns - busy_until_ns_ - *idle_cap_ns_;
  }
  busy_until_ns_ = std::max({busy_until_ns_, *arrival_ns, io.complete_ns.value_or(*arrival_ns)});
  due_ns_ = ScaleNs(*arrival_ns - *first_ns_ - idle_cut_ns_);
  return due_ns_;
}

}  // namespace blktape
