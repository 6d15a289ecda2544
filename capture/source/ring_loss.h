#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"

namespace blktape {

// What per_cpu/cpuN/stats of tracefs says was lost.
struct RingStats {
  uint64_t overrun = 0;         // overwritten before they were read
  uint64_t commit_overrun = 0;  // no room behind an event that was still being written
  uint64_t dropped = 0;         // refused, as the ring was full
  uint64_t lost() const { return overrun + commit_overrun + dropped; }
};
// kDataLoss if the text has no overrun line.
Result<RingStats> ParseRingStats(std::string_view text);

// Says how many events each gap in one CPU's ring (or one disk's relay) cost, so that the sum is
// what the kernel counted.
//
// A page after a gap mostly holds the number of events lost before it; where the page was full it
// only says that there was a gap. Then the kernel's running total tells, which may by then include
// later gaps that will be reported with a number of their own: those are cut, so that nothing is
// counted twice.
class RingLossAccount {
 public:
  // A gap with the number the page held, if it did. `kernel_total` returns the total of this CPU
  // now; asked only where needed.
  template <typename KernelTotal>
  uint64_t OnGap(std::optional<uint64_t> stored, KernelTotal kernel_total) {
    if (stored && !ahead_) return Report(*stored);
    const uint64_t total = kernel_total();
    const uint64_t rest = total > reported_ ? total - reported_ : 0;
    if (!stored) {
      ahead_ = true;
      return Report(rest);
    }
    return Report(*stored < rest ? *stored : rest);
  }

  // A gap said to have cost `claimed`, of which only what the kernel's total knows is true.
  uint64_t OnClaim(uint64_t claimed, uint64_t kernel_total) {
    if (kernel_total <= reported_) return 0;
    return Report(std::min(claimed, kernel_total - reported_));
  }

  // What the kernel's total has beyond all gaps seen so far.
  uint64_t Rest(uint64_t kernel_total) {
    if (kernel_total <= reported_) return 0;
    ahead_ = true;
    return Report(kernel_total - reported_);
  }

  uint64_t reported() const { return reported_; }

 private:
  uint64_t Report(uint64_t count) {
    reported_ += count;
    return count;
  }

  uint64_t reported_ = 0;
  bool ahead_ = false;  // something was reported from the running total
};

}  // namespace blktape
