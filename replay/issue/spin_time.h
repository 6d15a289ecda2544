#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"

namespace blktape {

// How long before a due time a thread stops sleeping and polls: longer where its sleeps end late,
// which depends on the machine and on the hour (idle states, a busy host under a virtual machine).
// Half as much again as the worst of the last one to two seconds was late, within bounds. Not
// thread-safe.
class SpinTime {
 public:
  static constexpr int64_t kLongestNs = kNanosPerMilli;

  // `least_ns` may be above kLongestNs; it is kept to then.
  explicit SpinTime(int64_t least_ns) : least_ns_(least_ns), spin_ns_(least_ns) {}

  int64_t ns() const { return spin_ns_; }

  // A sleep that was to end at `wanted_ns` ended at `woken_ns`, on the same clock.
  void Woke(int64_t wanted_ns, int64_t woken_ns) {
    if (woken_ns - window_start_ns_ > kNanosPerSecond) {
      late_before_ns_ = late_ns_;
      late_ns_ = 0;
      window_start_ns_ = woken_ns;
    }
    late_ns_ = std::max(late_ns_, woken_ns - wanted_ns);
    const int64_t worst_ns = std::min(std::max(late_before_ns_, late_ns_), kLongestNs);
    spin_ns_ = std::max(least_ns_, std::min(worst_ns * 3 / 2, kLongestNs));
  }

 private:
  const int64_t least_ns_;
  int64_t spin_ns_;
  int64_t window_start_ns_ = 0;
  int64_t late_ns_ = 0;  // the worst since then
  int64_t late_before_ns_ = 0;
};

}  // namespace blktape
