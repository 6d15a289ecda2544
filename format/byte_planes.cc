#include "format/byte_planes.h"

#include <bit>
#include <string>

namespace blktape {

void PutPlanes(std::span<const uint64_t> values, proto::Column* column) {
  uint64_t any = 0;
  for (const uint64_t value : values) any |= value;
  uint32_t mask = 0;
  for (int plane = 0; plane < 8; ++plane) {
    if (((any >> (8 * plane)) & 0xFF) != 0) mask |= 1u << plane;
  }
  column->set_plane_mask(mask);
  std::string& out = *column->mutable_planes();
  out.resize(std::popcount(mask) * values.size());
  char* to = out.data();
  for (int plane = 0; plane < 8; ++plane) {
    if ((mask & (1u << plane)) == 0) continue;
    for (size_t i = 0; i < values.size(); ++i) to[i] = static_cast<char>(values[i] >> (8 * plane));
    to += values.size();
  }
}

bool GetPlanes(const proto::Column& column, size_t count, int width_bytes,
               std::vector<uint64_t>* values) {
  const uint32_t mask = column.plane_mask();
  if ((static_cast<uint64_t>(mask) >> width_bytes) != 0) return false;
  if (column.planes().size() != std::popcount(mask) * count) return false;
  values->assign(count, 0);
  uint64_t* const to = values->data();
  const auto* from = reinterpret_cast<const uint8_t*>(column.planes().data());
  for (int plane = 0; plane < width_bytes; ++plane) {
    if ((mask & (1u << plane)) == 0) continue;
    for (size_t i = 0; i < count; ++i) to[i] |= static_cast<uint64_t>(from[i]) << (8 * plane);
    from += count;
  }
  return true;
}

}  // namespace blktape
