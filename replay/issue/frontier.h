#pragma once

#include <cstdint>
#include <vector>

namespace blktape {

// Up to which I/O, counted from 1 in the order they were taken, all are complete, while they
// complete in any order. Constant time a call; one thread.
class Frontier {
 public:
  explicit Frontier(uint32_t slots) : out_(slots) {}

  // The next I/O, known by `slot` until it is done.
  void Take(uint32_t slot);
  void Done(uint32_t slot);

  uint64_t complete_through() const { return oldest_ == kNone ? taken_ : out_[oldest_].number - 1; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  // Those out are linked in the order they were taken.
  struct Out {
    uint64_t number = 0;
    uint32_t older = kNone;
    uint32_t younger = kNone;
  };
  std::vector<Out> out_;
  uint32_t oldest_ = kNone;
  uint32_t youngest_ = kNone;
  uint64_t taken_ = 0;
};

}  // namespace blktape
