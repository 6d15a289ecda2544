#include "analysis/depth_meter.h"

#include <utility>

namespace blktape {

InFlight::Depths DepthMeter::DepthsOf(size_t depth, uint64_t max, __int128 time_ns,
                                      int64_t since_ns, const Classes& own) const {
  InFlight::Depths depths{.depth = depth, .max = max, .time_ns = time_ns, .since_ns = since_ns};
  for (size_t i = 0; i < own.size(); ++i) {
    depths.classes[i].issued = both_classes_[i].issued + own[i].issued;
    depths.classes[i].time_ns = both_classes_[i].time_ns + own[i].time_ns;
  }
  return depths;
}

// One queue does as long as I/Os come in order of their start and none has to be given up: then a
// data request that ended before another I/O began has also ended before the next data request. Two
// take over here, as they would be by now.
void DepthMeter::AddApart(int64_t start_ns, int64_t end_ns, bool data) {
  if (!apart_) {
    // Takes back what data requests were told of since the last of them began.
    int64_t until_ns = since_ns_;
    size_t depth = data_;
    for (size_t i = popped_.size() + 1; i-- > 0;) {
      const int64_t from_ns = i > 0 ? popped_[i - 1] : settled_data_ns_;
      if (depth > 0) data_classes_[InFlight::ClassOf(depth)].time_ns -= until_ns - from_ns;
      until_ns = from_ns;
      if (i > 0) ++depth;
    }
    const InFlight::Depths of_all = DepthsOf(all_, max_all_, all_ns_, since_ns_, all_classes_);
    const InFlight::Depths of_data =
        DepthsOf(depth, max_data_, data_ns_, settled_data_ns_, data_classes_);
    EndQueue all_ends, data_ends;
    for (const int64_t popped_ns : popped_) data_ends.Push(popped_ns);
    for (; !ends_.empty(); ends_.Pop()) {
      all_ends.Push(ends_.First() >> 1);
      if ((ends_.First() & 1) != 0) data_ends.Push(ends_.First() >> 1);
    }
    apart_ = Apart{InFlight(of_all, std::move(all_ends)), InFlight(of_data, std::move(data_ends))};
  }
  apart_->all.Add(start_ns, end_ns);
  if (data) apart_->data.Add(start_ns, end_ns);
}

DepthMeter::Apart& DepthMeter::Finish() {
  if (!apart_) {
    while (!ends_.empty()) PopFirst();
    apart_ = Apart{
        InFlight(DepthsOf(0, max_all_, all_ns_, since_ns_, all_classes_), EndQueue()),
        InFlight(DepthsOf(0, max_data_, data_ns_, since_data_ns_, data_classes_), EndQueue())};
  }
  apart_->all.FinishClasses();
  apart_->data.FinishClasses();
  return *apart_;
}

}  // namespace blktape
