#include "capture/arrival_sorter.h"

namespace blktape {

void ArrivalSorter::Add(const FinishedIo& io) {
  const int64_t arrival_ns = io.record.arrival_ns().value_or(0);
  if (left_ns_ && arrival_ns < *left_ns_) {
    ++late_;
    leave_(io);
    return;
  }
  uint32_t slot = 0;
  if (free_.empty()) {
    slot = static_cast<uint32_t>(slots_.size());
    slots_.push_back(io);
  } else {
    slot = free_.back();
    free_.pop_back();
    slots_[slot] = io;
  }
  order_.push({arrival_ns, io.record.issue_ns.value_or(arrival_ns), slot});
  while (order_.size() > hold_records_) LeaveOldest();
}

void ArrivalSorter::Release(int64_t ns) {
  while (!order_.empty() && order_.top().arrival_ns < ns) LeaveOldest();
}

void ArrivalSorter::LeaveOldest() {
  const Place oldest = order_.top();
  order_.pop();
  left_ns_ = oldest.arrival_ns;
  leave_(slots_[oldest.slot]);
  free_.push_back(oldest.slot);
}

}  // namespace blktape
