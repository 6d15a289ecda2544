#include "format/byte_planes.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace blktape {

void PlaneWriter::Add(std::span<const uint64_t> values) {
  uint64_t any = 0;
  for (const uint64_t value : values) any |= value;
  for (size_t plane = 0; plane < planes_.size(); ++plane) {
    if (((any >> (8 * plane)) & 0xFF) == 0) continue;
    std::string& bytes = planes_[plane];
    bytes.resize(count_ + values.size());  // zeroes where it was left behind
    char* const to = bytes.data() + count_;
    for (size_t i = 0; i < values.size(); ++i) to[i] = static_cast<char>(values[i] >> (8 * plane));
  }
  count_ += values.size();
}

void PlaneWriter::Finish(proto::Column* column) {
  uint32_t mask = 0;
  for (size_t plane = 0; plane < planes_.size(); ++plane) {
    if (!planes_[plane].empty()) mask |= 1u << plane;
  }
  column->set_plane_mask(mask);
  std::string& out = *column->mutable_planes();
  out.clear();
  out.reserve(std::popcount(mask) * count_);
  for (std::string& bytes : planes_) {
    if (bytes.empty()) continue;
    out += bytes;
    out.append(count_ - bytes.size(), '\0');
    bytes.clear();
  }
  count_ = 0;
}

bool PlaneReader::Begin(const proto::Column& column, size_t count, int width_bytes) {
  const uint32_t mask = column.plane_mask();
  if ((static_cast<uint64_t>(mask) >> width_bytes) != 0) return false;
  if (column.planes().size() != std::popcount(mask) * count) return false;
  const auto* from = reinterpret_cast<const uint8_t*>(column.planes().data());
  for (size_t plane = 0; plane < planes_.size(); ++plane) {
    const bool there = (mask & (1u << plane)) != 0;
    planes_[plane] = there ? from : nullptr;
    if (there) from += count;
  }
  left_ = count;
  return true;
}

void PlaneReader::Take(std::span<uint64_t> values) {
  BLKTAPE_CHECK(values.size() <= left_);
  left_ -= values.size();
  std::ranges::fill(values, 0);
  for (size_t plane = 0; plane < planes_.size(); ++plane) {
    const uint8_t* const from = planes_[plane];
    if (from == nullptr) continue;
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] |= static_cast<uint64_t>(from[i]) << (8 * plane);
    }
    planes_[plane] = from + values.size();
  }
}

}  // namespace blktape
