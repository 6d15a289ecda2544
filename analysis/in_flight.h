#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace blktape {

// Moments, of which the earliest is taken first. One that is put in near the end of the others, as
// most completions are, costs little; any costs the logarithm of how many there are at most. Not
// thread-safe.
class EndQueue {
 public:
  void Push(int64_t moment) {
    if (end_ == moments_.size()) MakeRoom();
    int64_t* const begin = moments_.data() + head_;
    int64_t* at = moments_.data() + end_;
    if (at - begin > kSteps && at[-kSteps] > moment) [[unlikely]] {
      far_.push(moment);  // its place is further away than what is worth moving
    } else {
      for (; at > begin && at[-1] > moment; --at) *at = at[-1];
      *at = moment;
      ++end_;
    }
    SetFirst();
  }
  bool empty() const { return size() == 0; }
  size_t size() const { return end_ - head_ + far_.size(); }
  // INT64_MAX where there is none.
  int64_t First() const { return first_; }
  // There is one.
  void Pop() {
    if (!far_.empty() && far_.top() == first_) {
      far_.pop();
    } else {
      ++head_;
    }
    SetFirst();
  }

 private:
  static constexpr std::ptrdiff_t kSteps = 64;
  void MakeRoom() {
    std::copy(moments_.begin() + static_cast<std::ptrdiff_t>(head_), moments_.end(),
              moments_.begin());
    end_ -= head_;
    head_ = 0;
    if (2 * end_ >= moments_.size()) moments_.resize(std::max<size_t>(1024, 2 * moments_.size()));
  }
  void SetFirst() {
    first_ = head_ < end_ ? moments_[head_] : INT64_MAX;
    if (!far_.empty()) [[unlikely]] {
      first_ = std::min(first_, far_.top());
    }
  }

  std::vector<int64_t> moments_;  // in order, from head_ to end_
  size_t head_ = 0;
  size_t end_ = 0;
  int64_t first_ = INT64_MAX;
  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>> far_;
};

// How many I/Os are in flight when, fed with intervals [start, end) in order of their start. At
// equal times completions come first, so an I/O that takes no time is never in flight. Memory: one
// end per I/O in flight, at most kLimit of them; beyond that the earliest is taken as complete, and
// `limited` says so. Not thread-safe.
class InFlight {
 public:
  static constexpr size_t kLimit = 1u << 20;

  // How often a depth was met and for how long: [k] of depths in (2^(k-1), 2^k], [0] of depth 1.
  static constexpr size_t kClasses = 21;
  static size_t ClassOf(size_t depth) { return static_cast<size_t>(std::bit_width(depth - 1)); }
  struct Class {
    uint64_t issued = 0;  // intervals that began at that depth, themselves included
    int64_t time_ns = 0;
  };

  // The account of it, told of each begin and each end in their order.
  struct Depths {
    size_t depth = 0;
    uint64_t max = 0;
    __int128 time_ns = 0;
    int64_t since_ns = 0;  // since when the depth is what it is
    std::array<Class, kClasses> classes{};

    void Begin(int64_t start_ns, int64_t end_ns) {
      time_ns += end_ns - start_ns;
      if (depth > 0) classes[ClassOf(depth)].time_ns += start_ns - since_ns;
      since_ns = start_ns;
      ++depth;
      ++classes[ClassOf(depth)].issued;
      max = std::max<uint64_t>(max, depth);
    }
    void End(int64_t end_ns) {
      classes[ClassOf(depth)].time_ns += end_ns - since_ns;
      since_ns = end_ns;
      --depth;
    }
  };

  InFlight() = default;
  // As it is after such a past; `depths.depth` moments are in `ends`.
  InFlight(const Depths& depths, EndQueue ends) : ends_(std::move(ends)), depths_(depths) {}

  void Add(int64_t start_ns, int64_t end_ns) {
    while (!ends_.empty() && ends_.First() <= start_ns) PopEnd();
    if (end_ns <= start_ns) return;
    if (ends_.size() == kLimit) {
      // Its time counts as if it were still there; it is only no longer waited for.
      ends_.Pop();
      limited_ = true;
      depths_.classes[ClassOf(depths_.depth)].time_ns += start_ns - depths_.since_ns;
      depths_.since_ns = start_ns;
      --depths_.depth;
    }
    depths_.Begin(start_ns, end_ns);
    ends_.Push(end_ns);
  }

  uint64_t max() const { return depths_.max; }
  // The integral of the depth over time: the sum of the lengths of all intervals.
  __int128 time_ns() const { return depths_.time_ns; }
  // The maximum is a lower bound.
  bool limited() const { return limited_; }
  // To the last end. Call last: it completes all that is in flight.
  const std::array<Class, kClasses>& FinishClasses() {
    while (!ends_.empty()) PopEnd();
    return depths_.classes;
  }

 private:
  void PopEnd() {
    depths_.End(ends_.First());
    ends_.Pop();
  }

  EndQueue ends_;
  Depths depths_;
  bool limited_ = false;
};

}  // namespace blktape
