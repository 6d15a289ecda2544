#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/trace.pb.h"

namespace blktape {

// Cuts `values` into byte planes: byte 0 of every value, then byte 1, ...; a plane that is all
// zero is left out. Fills column.plane_mask and column.planes.
void PutPlanes(std::span<const uint64_t> values, proto::Column* column);

// The `count` values of `column` into `values`; false if the column does not hold exactly as many
// or one needs more than `width_bytes` bytes.
[[nodiscard]] bool GetPlanes(const proto::Column& column, size_t count, int width_bytes,
                             std::vector<uint64_t>* values);

// Small magnitudes of either sign become small numbers. `difference` is a two's complement number.
constexpr uint64_t ZigZag(uint64_t difference) {
  return (difference << 1) ^ (0 - (difference >> 63));
}
constexpr uint64_t UnZigZag(uint64_t coded) { return (coded >> 1) ^ (0 - (coded & 1)); }

}  // namespace blktape
