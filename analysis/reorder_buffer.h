#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace blktape {

// Puts items into the order of their time where they come in another order that is close to it, as
// records do: they come by arrival, but were issued, later, in an order of their own. An item of
// time t may leave once nothing can follow with a time before t, which is when an arrival of t or
// later has come. Items of equal time keep the order in which they came. Holds at most `capacity`
// items: beyond that the earliest leaves early. Not thread-safe.
template <typename Item>
class ReorderBuffer {
 public:
  // Arrivals themselves may be out of order a little: so many items are always held back.
  static constexpr size_t kSlack = 64;
  static constexpr size_t kCapacity = 65'536;

  void Push(int64_t time_ns, Item item) {
    // From the back: nearly always the place is there.
    items_.emplace_back(time_ns, std::move(item));
    for (size_t at = items_.size() - 1; at > head_ && items_[at - 1].first > items_[at].first;
         --at) {
      std::swap(items_[at - 1], items_[at]);
    }
  }

  // Calls `take(time_ns, item)` for all that may leave now that an arrival of `watermark_ns` has
  // come.
  template <typename Take>
  void Release(int64_t watermark_ns, Take&& take) {
    while (items_.size() - head_ > kSlack) {
      if (items_[head_].first > watermark_ns && items_.size() - head_ <= kCapacity) break;
      Pop(take);
    }
    if (head_ >= kCapacity) {
      items_.erase(items_.begin(), items_.begin() + static_cast<int64_t>(head_));
      head_ = 0;
    }
  }

  template <typename Take>
  void ReleaseAll(Take&& take) {
    while (head_ < items_.size()) Pop(take);
    items_.clear();
    head_ = 0;
  }

 private:
  template <typename Take>
  void Pop(Take& take) {
    const auto& [time_ns, item] = items_[head_++];
    take(time_ns, item);
  }

  std::vector<std::pair<int64_t, Item>> items_;
  size_t head_ = 0;  // items before it have left
};

}  // namespace blktape
