#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"

namespace blktape {

// A first-in first-out queue in one block of memory that only grows: once it is large enough, it no
// longer allocates. T must be default-constructible. Not thread-safe.
template <typename T>
class RingQueue {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size_ - 1]; }
  const T& back() const { return (*this)[size_ - 1]; }
  // The i-th from the front.
  T& operator[](size_t i) {
    BLKTAPE_CHECK(i < size_);
    return slots_[(begin_ + i) & (slots_.size() - 1)];
  }
  const T& operator[](size_t i) const {
    BLKTAPE_CHECK(i < size_);
    return slots_[(begin_ + i) & (slots_.size() - 1)];
  }

  void push_back(T value) {
    if (size_ == slots_.size()) Grow();
    slots_[(begin_ + size_) & (slots_.size() - 1)] = std::move(value);
    ++size_;
  }
  // Adds an element at the back, which the caller fills in place. It still holds the old content of
  // its slot.
  T& grow_back() {
    if (size_ == slots_.size()) Grow();
    ++size_;
    return back();
  }
  void pop_front() {
    BLKTAPE_CHECK(size_ > 0);
    // Frees what the element owns now, not when its slot is reused.
    if constexpr (!std::is_trivially_destructible_v<T>) slots_[begin_] = T();
    begin_ = (begin_ + 1) & (slots_.size() - 1);
    --size_;
  }
  void pop_back() {
    BLKTAPE_CHECK(size_ > 0);
    if constexpr (!std::is_trivially_destructible_v<T>) back() = T();
    --size_;
  }
  void clear() {
    while (!empty()) pop_back();
  }

 private:
  void Grow() {
    std::vector<T> bigger(slots_.empty() ? 16 : slots_.size() * 2);
    for (size_t i = 0; i < size_; ++i) bigger[i] = std::move((*this)[i]);
    slots_ = std::move(bigger);
    begin_ = 0;
  }

  std::vector<T> slots_;  // size is a power of two
  size_t begin_ = 0;
  size_t size_ = 0;
};

}  // namespace blktape
