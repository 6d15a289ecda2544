#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"

namespace blktape {

// The losses in per_cpu/cpuN/stats of tracefs.
struct RingStats {
  uint64_t overrun = 0;         // events overwritten before they were read
  uint64_t commit_overrun = 0;  // no space after an event that was still being written
  uint64_t dropped = 0;         // refused because the ring was full
  uint64_t lost() const { return overrun + commit_overrun + dropped; }
};
// kDataLoss if the text has no overrun line.
Result<RingStats> ParseRingStats(std::string_view text);

// Finds how many events were lost in each gap of one CPU's ring (or one disk's relay), so that the
// sum equals the kernel's count.
//
// A page after a gap usually contains the number of events lost before it, but a full page only
// says that there was a gap. In that case the number comes from the kernel's running total. The
// total may already include later gaps that will be reported with their own number; those numbers
// are then reduced, so that no event is counted twice.
class RingLossAccount {
 public:
  // Books a gap with the number in the page, if there was one. `kernel_total` returns the current
  // total of this CPU; it is called only if needed.
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

  // Books a gap with the number `claimed`, limited by the kernel's total.
  uint64_t OnClaim(uint64_t claimed, uint64_t kernel_total) {
    if (kernel_total <= reported_) return 0;
    return Report(std::min(claimed, kernel_total - reported_));
  }

  // The part of the kernel's total that is beyond all gaps seen so far.
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
  bool ahead_ = false;  // a gap was reported from the running total
};

}  // namespace blktape
