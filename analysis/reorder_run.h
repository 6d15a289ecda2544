#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "analysis/reorder_buffer.h"

namespace blktape {

// What a ReorderBuffer does, for many items at a time: the same items leave in the same order, but
// those that come beyond its capacity are put in order first, with all that came since. Items are
// put where they are to be read, and are not moved again unless they have to wait for the next
// time. Item has a member start_ns. Not thread-safe.
template <typename Item>
class ReorderRun {
 public:
  // For each item, in the order of coming: `watermark_ns` is the latest arrival up to it.
  void Push(Item item, int64_t watermark_ns) {
    // One that was due before others left may find them gone.
    late_ |= item.start_ns < watermark_ns_;
    watermarks_ns_.push_back(watermark_ns);
    watermark_ns_ = watermark_ns;
    items_.push_back(std::move(item));
  }

  // Puts what may leave by now in order; the first Leaving() of it. Then Drop(). Where little came
  // since, beside what is held, nothing leaves yet: each call looks at all that is held.
  const std::vector<Item>& Order() {
    deferred_ = watermarks_ns_.size() < (items_.size() - watermarks_ns_.size()) / 8;
    if (!deferred_) OrderNow();
    return items_;
  }
  // All there is, in order; nothing may be pushed any more.
  const std::vector<Item>& OrderAll() {
    deferred_ = false;
    OrderNow();
    leaving_ = items_.size();
    return items_;
  }
  size_t Leaving() const { return leaving_; }
  void Drop() {
    if (deferred_) return;
    items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(leaving_));
    leaving_ = 0;
    watermarks_ns_.clear();
    late_ = false;
  }

 private:
  static bool StartsBefore(const Item& a, const Item& b) { return a.start_ns < b.start_ns; }

  void OrderNow() {
    if (late_) {
      OrderOneByOne();
      return;
    }
    const size_t held = items_.size() - watermarks_ns_.size();
    for (size_t i = held; i < items_.size(); ++i) {
      if (i == 0 || items_[i - 1].start_ns <= items_[i].start_ns) continue;
      if (!Insert(i)) {
        const auto came = items_.begin() + static_cast<std::ptrdiff_t>(i);
        std::stable_sort(came, items_.end(), StartsBefore);
        std::inplace_merge(items_.begin(), came, items_.end(), StartsBefore);
        break;
      }
    }
    using Buffer = ReorderBuffer<Item>;
    leaving_ = items_.size() > Buffer::kCapacity ? items_.size() - Buffer::kCapacity : 0;
    if (items_.size() > Buffer::kSlack) {
      const auto first = items_.begin() + static_cast<std::ptrdiff_t>(leaving_);
      const auto end = items_.end() - static_cast<std::ptrdiff_t>(Buffer::kSlack);
      leaving_ = static_cast<size_t>(
          std::upper_bound(first, end, watermark_ns_,
                           [](int64_t ns, const Item& item) { return ns < item.start_ns; }) -
          items_.begin());
    }
  }

  // False if its place is further away than what is worth moving.
  bool Insert(size_t at) {
    constexpr size_t kSteps = 64;
    const size_t least = at > kSteps ? at - kSteps : 0;
    size_t to = at;
    while (to > least && items_[to - 1].start_ns > items_[at].start_ns) --to;
    if (to == least && to > 0 && items_[to - 1].start_ns > items_[at].start_ns) return false;
    const Item item = items_[at];
    std::move_backward(items_.begin() + static_cast<std::ptrdiff_t>(to),
                       items_.begin() + static_cast<std::ptrdiff_t>(at),
                       items_.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    items_[to] = item;
    return true;
  }

  void OrderOneByOne() {
    ReorderBuffer<Item> buffer;
    const size_t held = items_.size() - watermarks_ns_.size();
    std::vector<Item> ordered;
    ordered.reserve(items_.size());
    const auto take = [&ordered](int64_t, const Item& item) { ordered.push_back(item); };
    for (size_t i = 0; i < items_.size(); ++i) {
      buffer.Push(items_[i].start_ns, items_[i]);
      if (i >= held) buffer.Release(watermarks_ns_[i - held], take);
    }
    leaving_ = ordered.size();
    buffer.ReleaseAll(take);
    items_ = std::move(ordered);
  }

  std::vector<Item> items_;             // what was held back, in order, then what came
  std::vector<int64_t> watermarks_ns_;  // of what came
  int64_t watermark_ns_ = std::numeric_limits<int64_t>::min();
  bool late_ = false;
  bool deferred_ = false;
  size_t leaving_ = 0;
};

}  // namespace blktape
