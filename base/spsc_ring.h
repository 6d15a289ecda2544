#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <memory>
#include <utility>

#include "base/check.h"

namespace blktape {

// A bounded queue between exactly one pushing and one popping thread, without locks and without
// allocation after construction. The constructor touches all memory, so that neither thread has a
// page fault later.
template <typename T>
class SpscRing {
 public:
  // `capacity`: a power of two.
  explicit SpscRing(size_t capacity)
      : mask_(capacity - 1), items_(std::make_unique<T[]>(capacity)) {
    BLKTAPE_CHECK(std::has_single_bit(capacity));
  }
  SpscRing(const SpscRing&) = delete;
  SpscRing& operator=(const SpscRing&) = delete;

  // Called by the pushing thread. False if the queue is full.
  bool TryPush(const T& item) {
    const size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_seen_ > mask_) {
      head_seen_ = head_.load(std::memory_order_acquire);
      if (tail - head_seen_ > mask_) return false;
    }
    items_[tail & mask_] = item;
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }

  // Called by the popping thread. Null if the queue is empty. The item stays valid until Pop().
  T* Front() {
    const size_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_seen_) {
      tail_seen_ = tail_.load(std::memory_order_acquire);
      if (head == tail_seen_) return nullptr;
    }
    return &items_[head & mask_];
  }
  void Pop() { head_.store(head_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

  // Any thread may call this. The size may have changed when it returns.
  size_t size() const {
    const size_t head = head_.load(std::memory_order_acquire);
    return tail_.load(std::memory_order_acquire) - head;
  }
  size_t capacity() const { return mask_ + 1; }

 private:
  const size_t mask_;
  const std::unique_ptr<T[]> items_;
  // Each thread has a cache line of its own, with the other thread's position as last seen.
  alignas(64) std::atomic<size_t> tail_ = 0;
  size_t head_seen_ = 0;
  alignas(64) std::atomic<size_t> head_ = 0;
  size_t tail_seen_ = 0;
};

}  // namespace blktape
