#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <utility>
#include <vector>

namespace blktape {

// Puts items into the order of their time where they come in another order that is close to it, as
// records do: they come by arrival, but were issued, later, in an order of their own. An item of
// time t may leave once nothing can follow with a time before t, which is when an arrival of t or
// later has come. Items of equal time keep the order in which they came. Holds at most `capacity`
// items: beyond that the earliest leaves early. An item costs the logarithm of what is held,
// whatever the order. Not thread-safe.
template <typename Item>
class ReorderBuffer {
 public:
  // Arrivals themselves may be out of order a little: so many items are always held back.
  static constexpr size_t kSlack = 64;
  static constexpr size_t kCapacity = 65'536;

  void Push(int64_t time_ns, Item item) {
    if (head_ == items_.size() || items_.back().time_ns <= time_ns) [[likely]] {
      items_.push_back({time_ns, next_++, std::move(item)});
      return;
    }
    // From the back: nearly always the place is near it.
    size_t at = items_.size();
    while (at > head_ && items_.size() - at < kSteps && items_[at - 1].time_ns > time_ns) --at;
    if (at > head_ && items_[at - 1].time_ns > time_ns) {
      far_.push({time_ns, next_++, std::move(item)});
      return;
    }
    items_.insert(items_.begin() + static_cast<std::ptrdiff_t>(at),
                  {time_ns, next_++, std::move(item)});
  }

  // Calls `take(time_ns, item)` for all that may leave now that an arrival of `watermark_ns` has
  // come.
  template <typename Take>
  void Release(int64_t watermark_ns, Take&& take) {
    while (held() > kSlack) {
      if (held() <= kCapacity && FirstNs() > watermark_ns) break;
      Pop(take);
    }
    if (head_ >= kCapacity) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
  }

  template <typename Take>
  void ReleaseAll(Take&& take) {
    while (held() > 0) Pop(take);
    items_.clear();
    head_ = 0;
  }

 private:
  // An item whose place is further from the back waits in `far_`.
  static constexpr size_t kSteps = 64;

  struct Held {
    int64_t time_ns;
    uint64_t number;  // in the order of coming
    Item item;
    bool LeavesBefore(const Held& other) const {
      return std::pair(time_ns, number) < std::pair(other.time_ns, other.number);
    }
  };
  struct LeavesAfter {
    bool operator()(const Held& a, const Held& b) const { return b.LeavesBefore(a); }
  };

  size_t held() const { return items_.size() - head_ + far_.size(); }
  bool FarIsFirst() const {
    return !far_.empty() && (head_ == items_.size() || far_.top().LeavesBefore(items_[head_]));
  }
  int64_t FirstNs() const { return FarIsFirst() ? far_.top().time_ns : items_[head_].time_ns; }

  template <typename Take>
  void Pop(Take& take) {
    if (FarIsFirst()) {
      const Held first = far_.top();
      far_.pop();
      take(first.time_ns, first.item);
    } else {
      const Held& first = items_[head_++];
      take(first.time_ns, first.item);
    }
  }

  std::vector<Held> items_;  // in order
  size_t head_ = 0;          // items before it have left
  std::priority_queue<Held, std::vector<Held>, LeavesAfter> far_;
  uint64_t next_ = 0;
};

}  // namespace blktape
