#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/in_flight.h"

namespace blktape {

// Two InFlight in one: of all I/Os, and of those among them that are data requests. Gives what
// these two would, for half the work: one queue serves both, and as long as nothing but data
// requests is in flight one account does. Not thread-safe.
class DepthMeter {
 public:
  // [start, end), in order of start. Both within +-2^60.
  void Add(int64_t start_ns, int64_t end_ns, bool data) {
    if (apart_ || start_ns < last_start_ns_ || ends_.size() == InFlight::kLimit) [[unlikely]] {
      AddApart(start_ns, end_ns, data);
      return;
    }
    last_start_ns_ = start_ns;
    while (ends_.First() <= 2 * start_ns + 1) PopFirst();
    if (end_ns > start_ns) Begin(start_ns, end_ns, data);
    if (data) {
      popped_.clear();
      settled_data_ns_ = since_data_ns_;
    }
  }

  // Call last: completes all that is in flight.
  InFlight& FinishAll() { return Finish().all; }
  InFlight& FinishData() { return Finish().data; }

 private:
  struct Apart {
    InFlight all, data;
  };
  using Classes = std::array<InFlight::Class, InFlight::kClasses>;

  // Accounts for the time up to an event.
  void Pass(int64_t now_ns) {
    const int64_t passed_ns = now_ns - since_ns_;
    since_ns_ = now_ns;
    if (all_ == data_) {
      if (all_ > 0) both_classes_[InFlight::ClassOf(all_)].time_ns += passed_ns;
      return;
    }
    all_classes_[InFlight::ClassOf(all_)].time_ns += passed_ns;
    if (data_ > 0) data_classes_[InFlight::ClassOf(data_)].time_ns += passed_ns;
  }
  void Begin(int64_t start_ns, int64_t end_ns, bool data) {
    Pass(start_ns);
    ++all_;
    all_ns_ += end_ns - start_ns;
    max_all_ = std::max(max_all_, all_);
    if (data) {
      ++data_;
      data_ns_ += end_ns - start_ns;
      max_data_ = std::max(max_data_, data_);
      since_data_ns_ = start_ns;
      if (all_ == data_) {
        ++both_classes_[InFlight::ClassOf(all_)].issued;
      } else {
        ++all_classes_[InFlight::ClassOf(all_)].issued;
        ++data_classes_[InFlight::ClassOf(data_)].issued;
      }
    } else {
      ++all_classes_[InFlight::ClassOf(all_)].issued;
    }
    ends_.Push(2 * end_ns + (data ? 1 : 0));
  }
  void PopFirst() {
    const int64_t end_ns = ends_.First() >> 1;
    const bool data = (ends_.First() & 1) != 0;
    ends_.Pop();
    Pass(end_ns);
    --all_;
    if (!data) return;
    --data_;
    since_data_ns_ = end_ns;
    popped_.push_back(end_ns);
  }
  void AddApart(int64_t start_ns, int64_t end_ns, bool data);
  // The accounts as two InFlight have them.
  InFlight::Depths DepthsOf(size_t depth, uint64_t max, __int128 time_ns, int64_t since_ns,
                            const Classes& own) const;
  Apart& Finish();

  EndQueue ends_;  // moments are 2 * ns, and 1 more for a data request's
  size_t all_ = 0;
  size_t data_ = 0;
  int64_t since_ns_ = 0;       // of the last event
  int64_t since_data_ns_ = 0;  // of the last that began or ended a data request
  uint64_t max_all_ = 0;
  uint64_t max_data_ = 0;
  __int128 all_ns_ = 0;
  __int128 data_ns_ = 0;
  // Of the time in which only data requests were in flight; else of each.
  Classes both_classes_{}, all_classes_{}, data_classes_{};
  // Ends of data requests since the last of them began: an InFlight of them alone would not know
  // yet. And its last event.
  std::vector<int64_t> popped_;
  int64_t settled_data_ns_ = 0;
  int64_t last_start_ns_ = INT64_MIN;
  std::optional<Apart> apart_;  // from the first I/O on for which one queue would not do
};

}  // namespace blktape
