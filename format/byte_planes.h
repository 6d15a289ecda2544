#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "format/trace.pb.h"

namespace blktape {

// Cuts the values of a column into byte planes: byte 0 of every value, then byte 1, ...; a plane
// that is all zero is left out.
class PlaneWriter {
 public:
  void Add(std::span<const uint64_t> values);
  size_t count() const { return count_; }
  // Fills column.plane_mask and column.planes with what was added since the last time. Keeps its
  // memory.
  void Finish(proto::Column* column);

 private:
  std::array<std::string, 8> planes_;  // each up to its last value that is not zero, or further
  size_t count_ = 0;
};

// The values of a column one after the other.
class PlaneReader {
 public:
  // False if `column` does not hold exactly `count` values, or one needs more than `width_bytes`
  // bytes. It must stay as long as values are taken.
  [[nodiscard]] bool Begin(const proto::Column& column, size_t count, int width_bytes);
  // The next `values.size()`: no more than there are.
  void Take(std::span<uint64_t> values);
  size_t left() const { return left_; }

 private:
  std::array<const uint8_t*, 8> planes_ = {};  // the next byte of each; null: all zero
  size_t left_ = 0;
};

// Small magnitudes of either sign become small numbers. `difference` is a two's complement number.
constexpr uint64_t ZigZag(uint64_t difference) {
  return (difference << 1) ^ (0 - (difference >> 63));
}
constexpr uint64_t UnZigZag(uint64_t coded) { return (coded >> 1) ^ (0 - (coded & 1)); }

}  // namespace blktape
