#pragma once

#include <algorithm>
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

  void Add(int64_t start_ns, int64_t end_ns) {
    while (!ends_.empty() && ends_.top() <= start_ns) ends_.pop();
    if (end_ns <= start_ns) return;
    time_ns_ += end_ns - start_ns;
    if (ends_.size() == kLimit) {
      ends_.pop();
      limited_ = true;
    }
    ends_.push(end_ns);
    max_ = std::max<uint64_t>(max_, ends_.size());
  }

  uint64_t max() const { return max_; }
  // The integral of the depth over time: the sum of the lengths of all intervals.
  __int128 time_ns() const { return time_ns_; }
  // The maximum is a lower bound.
  bool limited() const { return limited_; }

 private:
  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>> ends_;
  uint64_t max_ = 0;
  __int128 time_ns_ = 0;
  bool limited_ = false;
};

}  // namespace blktape
