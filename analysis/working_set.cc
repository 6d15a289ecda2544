#include "analysis/working_set.h"

#include <algorithm>
#include <cmath>

#include "base/saturating.h"

namespace blktape {

void WorkingSetBuilder::End(size_t window) {
  if (!any_[window]) return;
  const auto blocks = static_cast<uint64_t>(std::llround(touched_[window].Estimate()));
  const uint64_t bytes = blocks * kBlockBytes;
  WorkingSet::Window& row = result_.windows[window];
  ++row.windows;
  row.peak_bytes = std::max(row.peak_bytes, bytes);
  sum_bytes_[window] += static_cast<double>(bytes);
  if (window + 1 < touched_.size()) {
    touched_[window + 1].Merge(touched_[window]);
    any_[window + 1] = true;
  }
  touched_[window].Clear();
  any_[window] = false;
}

void WorkingSetBuilder::EndUntil(int64_t minute) {
  End(0);
  for (size_t window = 1; window < kWindowsNs.size(); ++window) {
    const int64_t minutes = kWindowsNs[window] / kWindowsNs[0];
    if (minute / minutes != minute_ / minutes) End(window);
  }
  minute_ = minute;
}

void WorkingSetBuilder::Add(int64_t at_ns, uint32_t device, uint64_t offset_bytes, uint64_t bytes) {
  if (bytes == 0) return;
  if (!first_ns_) first_ns_ = at_ns;
  const int64_t minute = SaturatingSubtract(at_ns, *first_ns_) / kWindowsNs[0];
  if (minute > minute_) EndUntil(minute);
  any_[0] = true;
  const uint64_t end_bytes = SaturatingAdd(offset_bytes, std::min(bytes, kLongestBytes));
  for (uint64_t block = offset_bytes / kBlockBytes; block <= (end_bytes - 1) / kBlockBytes;
       ++block) {
    // 52 bits of block, 12 of device: no two of a real machine meet.
    touched_[0].Add(block ^ uint64_t{device} << 52);
  }
}

WorkingSet WorkingSetBuilder::Finish() {
  for (size_t window = 0; window < kWindowsNs.size(); ++window) {
    End(window);
    WorkingSet::Window& row = result_.windows[window];
    row.window_ns = kWindowsNs[window];
    if (row.windows > 0) row.mean_bytes = sum_bytes_[window] / static_cast<double>(row.windows);
  }
  return result_;
}

}  // namespace blktape
