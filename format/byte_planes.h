#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "format/trace.pb.h"

namespace blktape {

// Splits the values of a column into byte planes: byte 0 of every value, then byte 1, ... A plane
// of zeroes is left out.
class PlaneWriter {
 public:
  void Add(std::span<const uint64_t> values);
  size_t count() const { return count_; }
  // Fills column.plane_mask and column.planes with the values added since the last call. Keeps its
  // memory for reuse.
  void Finish(proto::Column* column);

 private:
  std::array<std::string, 8> planes_;  // each at least up to its last value that is not zero
  size_t count_ = 0;
};

// Reads the values of a column in order.
class PlaneReader {
 public:
  // False if `column` does not have exactly `count` values, or if a value needs more than
  // `width_bytes` bytes. `column` must stay valid until the last Take.
  [[nodiscard]] bool Begin(const proto::Column& column, size_t count, int width_bytes);
  // Reads the next `values.size()` values; there must be that many.
  void Take(std::span<uint64_t> values);
  // The same as narrower numbers, which hold them all.
  void TakeAs(std::span<uint8_t> values);
  void TakeAs(std::span<uint32_t> values);
  void TakeAs(std::span<uint64_t> values) { Take(values); }
  void TakeAs(std::span<int64_t> values) {
    Take({reinterpret_cast<uint64_t*>(values.data()), values.size()});
  }
  size_t left() const { return left_; }

 private:
  template <typename Value>
  void TakeNarrow(std::span<Value> values);

  std::array<const uint8_t*, 8> planes_ = {};  // the next byte of each plane; null: all zero
  size_t left_ = 0;
};

// Maps numbers of small magnitude and either sign to small numbers. `difference` is a two's
// complement number.
constexpr uint64_t ZigZag(uint64_t difference) {
  return (difference << 1) ^ (0 - (difference >> 63));
}
constexpr uint64_t UnZigZag(uint64_t coded) { return (coded >> 1) ^ (0 - (coded & 1)); }

}  // namespace blktape
