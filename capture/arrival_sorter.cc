#include "capture/arrival_sorter.h"

#include <algorithm>

namespace blktape {

void ArrivalSorter::Add(const FinishedIo& io) {
  const int64_t arrival_ns = io.record.arrival_ns().value_or(0);
  if (left_ns_ && arrival_ns < *left_ns_) {
    ++late_;
    leave_(io);
    return;
  }
  order_.push_back(
      {arrival_ns, io.record.issue_ns.value_or(arrival_ns), first_number_ + waiting_.size()});
  waiting_.push_back({io});
  while (order_.size() - gone_ > hold_records_) {
    Sort();
    LeaveOldest();
  }
}

void ArrivalSorter::Release(int64_t ns) {
  Sort();
  while (gone_ < order_.size() && order_[gone_].arrival_ns < ns) LeaveOldest();
}

void ArrivalSorter::Sort() {
  // What is moved is less than what has left.
  if (gone_ > order_.size() / 2) {
    order_.erase(order_.begin(), order_.begin() + static_cast<ptrdiff_t>(gone_));
    sorted_ -= gone_;
    gone_ = 0;
  }
  if (sorted_ == order_.size()) return;
  const auto begin = order_.begin() + static_cast<ptrdiff_t>(gone_);
  const auto added = order_.begin() + static_cast<ptrdiff_t>(sorted_);
  std::sort(added, order_.end());
  std::inplace_merge(std::lower_bound(begin, added, *added), added, order_.end());
  sorted_ = order_.size();
}

void ArrivalSorter::LeaveOldest() {
  const Place oldest = order_[gone_++];
  left_ns_ = oldest.arrival_ns;
  Waiting& waiting = waiting_[oldest.number - first_number_];
  leave_(waiting.io);
  waiting.left = true;
  for (; !waiting_.empty() && waiting_.front().left; ++first_number_) waiting_.pop_front();
}

}  // namespace blktape
