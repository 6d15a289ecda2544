#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace blktape {

// How many I/Os are in flight when, fed with intervals [start, end) in order of their start. At
// equal times completions come first, so an I/O that takes no time is never in flight. Memory: one
// end per I/O in flight, at most kLimit of them; beyond that the earliest is taken as complete, and
// `limited` says so. Not thread-safe.
class InFlight {
 public:
  static constexpr size_t kLimit = 1u << 20;

  // How often a depth was met and for how long: [k] of depths in (2^(k-1), 2^k], [0] of depth 1.
  static constexpr size_t kClasses = 21;
  struct Class {
    uint64_t issued = 0;  // intervals that began at that depth, themselves included
    int64_t time_ns = 0;
  };

  void Add(int64_t start_ns, int64_t end_ns) {
    while (!ends_.empty() && ends_.top() <= start_ns) PopEnd();
    if (end_ns <= start_ns) return;
    time_ns_ += end_ns - start_ns;
    if (!ends_.empty()) classes_[ClassOf(ends_.size())].time_ns += start_ns - since_ns_;
    since_ns_ = start_ns;
    if (ends_.size() == kLimit) {
      ends_.pop();
      limited_ = true;
    }
    ends_.push(end_ns);
    ++classes_[ClassOf(ends_.size())].issued;
    max_ = std::max<uint64_t>(max_, ends_.size());
  }

  uint64_t max() const { return max_; }
  // The integral of the depth over time: the sum of the lengths of all intervals.
  __int128 time_ns() const { return time_ns_; }
  // The maximum is a lower bound.
  bool limited() const { return limited_; }
  // To the last end. Call last: it completes all that is in flight.
  const std::array<Class, kClasses>& FinishClasses() {
    while (!ends_.empty()) PopEnd();
    return classes_;
  }

 private:
  static size_t ClassOf(size_t depth) { return static_cast<size_t>(std::bit_width(depth - 1)); }
  void PopEnd() {
    const int64_t end_ns = ends_.top();
    classes_[ClassOf(ends_.size())].time_ns += end_ns - since_ns_;
    since_ns_ = end_ns;
    ends_.pop();
  }

  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>> ends_;
  uint64_t max_ = 0;
  __int128 time_ns_ = 0;
  bool limited_ = false;
  int64_t since_ns_ = 0;  // since when the depth is what it is
  std::array<Class, kClasses> classes_{};
};

}  // namespace blktape
