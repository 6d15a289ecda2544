#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace blktape {

// The measure of a union of intervals [start, end], by merging them, never by summing. Intervals
// are given in order of their start; one that starts earlier than the run of touching intervals
// under way has its part before that run cut off (and is counted). Memory: constant.
class IntervalUnion {
 public:
  // Begins no new run: returns 0. Else the gap in ns between the run that just ended and this one.
  // The very first interval gives 0.
  int64_t Add(int64_t start_ns, int64_t end_ns) {
    if (!any_) {
      any_ = true;
      first_ns_ = run_start_ns_ = start_ns;
      run_end_ns_ = end_ns;
      return 0;
    }
    if (start_ns < run_start_ns_) {
      ++out_of_order_;
      if (end_ns < run_start_ns_) return 0;
    }
    if (start_ns <= run_end_ns_) {
      run_end_ns_ = std::max(run_end_ns_, end_ns);
      return 0;
    }
    const int64_t gap_ns = start_ns - run_end_ns_;
    closed_ns_ += run_end_ns_ - run_start_ns_;
    run_start_ns_ = start_ns;
    run_end_ns_ = end_ns;
    return gap_ns;
  }

  int64_t measure_ns() const { return closed_ns_ + run_end_ns_ - run_start_ns_; }
  // First start and last end; 0 where nothing was added.
  int64_t first_ns() const { return first_ns_; }
  int64_t last_ns() const { return run_end_ns_; }
  // Where the run under way began.
  int64_t run_start_ns() const { return run_start_ns_; }
  // Intervals that came too late to be counted whole.
  uint64_t out_of_order() const { return out_of_order_; }
  bool empty() const { return !any_; }

 private:
  bool any_ = false;
  int64_t first_ns_ = 0;
  int64_t closed_ns_ = 0;
  int64_t run_start_ns_ = 0;
  int64_t run_end_ns_ = 0;
  uint64_t out_of_order_ = 0;
};

// The measure alone, of intervals given likewise, for less: whether one begins a new run is hard to
// foretell, and this needs not know. Memory: constant.
class UnionMeasure {
 public:
  void Add(int64_t start_ns, int64_t end_ns) {
    out_of_order_ += start_ns < run_start_ns_;
    run_start_ns_ = start_ns > run_end_ns_ ? start_ns : run_start_ns_;
    const int64_t from_ns = std::max(start_ns, run_end_ns_);
    measure_ns_ += std::max<int64_t>(0, end_ns - from_ns);
    run_end_ns_ = std::max(run_end_ns_, end_ns);
  }
  int64_t measure_ns() const { return measure_ns_; }
  // Intervals that came too late to be counted whole.
  uint64_t out_of_order() const { return out_of_order_; }

 private:
  int64_t measure_ns_ = 0;
  uint64_t out_of_order_ = 0;
  // Of the run under way.
  int64_t run_start_ns_ = std::numeric_limits<int64_t>::min();
  int64_t run_end_ns_ = std::numeric_limits<int64_t>::min();
};

}  // namespace blktape
