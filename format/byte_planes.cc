#include "format/byte_planes.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"

namespace blktape {
namespace {

// Vectors of the compiler, which it makes of whatever the processor has.
using Bytes = uint8_t __attribute__((vector_size(16)));
using Words = uint16_t __attribute__((vector_size(16)));
using Doubles = uint32_t __attribute__((vector_size(16)));
constexpr size_t kRows = sizeof(Bytes);

Bytes Load(const uint8_t* from) {
  Bytes bytes;
  std::memcpy(&bytes, from, sizeof(bytes));
  return bytes;
}

// The first, and the last, halves of two vectors, an element of each in turn.
Bytes FirstHalves(Bytes a, Bytes b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
Bytes LastHalves(Bytes a, Bytes b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                 31);
}
Words FirstHalves(Words a, Words b) {
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}
Words LastHalves(Words a, Words b) {
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}
Doubles FirstHalves(Doubles a, Doubles b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
Doubles LastHalves(Doubles a, Doubles b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }

// kRows bytes of each of four planes as kRows numbers of 32 bits.
void JoinFour(const Bytes planes[4], Doubles to[4]) {
  const auto low_first = reinterpret_cast<Words>(FirstHalves(planes[0], planes[1]));
  const auto low_last = reinterpret_cast<Words>(LastHalves(planes[0], planes[1]));
  const auto high_first = reinterpret_cast<Words>(FirstHalves(planes[2], planes[3]));
  const auto high_last = reinterpret_cast<Words>(LastHalves(planes[2], planes[3]));
  to[0] = reinterpret_cast<Doubles>(FirstHalves(low_first, high_first));
  to[1] = reinterpret_cast<Doubles>(LastHalves(low_first, high_first));
  to[2] = reinterpret_cast<Doubles>(FirstHalves(low_last, high_last));
  to[3] = reinterpret_cast<Doubles>(LastHalves(low_last, high_last));
}

// kRows bytes from `at` on of each of four planes; null: a plane that is all zero.
void JoinFour(const uint8_t* const planes[4], size_t at, Doubles to[4]) {
  Bytes bytes[4];
  for (int i = 0; i < 4; ++i) bytes[i] = planes[i] == nullptr ? Bytes{} : Load(planes[i] + at);
  JoinFour(bytes, to);
}

// A byte of each of four, or eight, planes makes a number.
void JoinRows(const uint8_t* const planes[8], size_t at, uint32_t* to) {
  Doubles joined[4];
  JoinFour(planes, at, joined);
  std::memcpy(to, joined, sizeof(joined));
}
void JoinRows(const uint8_t* const planes[8], size_t at, uint64_t* to) {
  Doubles low[4], high[4] = {};
  JoinFour(planes, at, low);
  if (planes[4] != nullptr || planes[5] != nullptr || planes[6] != nullptr ||
      planes[7] != nullptr) {
    JoinFour(planes + 4, at, high);
  }
  for (int i = 0; i < 4; ++i) {
    const Doubles halves[2] = {FirstHalves(low[i], high[i]), LastHalves(low[i], high[i])};
    std::memcpy(to + kRows / 4 * i, halves, sizeof(halves));
  }
}

}  // namespace

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

template <typename Value>
void PlaneReader::TakeNarrow(std::span<Value> values) {
  BLKTAPE_CHECK(values.size() <= left_);
  left_ -= values.size();
  size_t at = 0;
  const auto none = [this](size_t from) {
    return std::all_of(planes_.begin() + static_cast<std::ptrdiff_t>(from), planes_.end(),
                       [](const uint8_t* plane) { return plane == nullptr; });
  };
  if (none(0)) {
    std::ranges::fill(values, Value{0});
    return;
  }
  if (none(1)) {
    for (; at < values.size(); ++at) values[at] = planes_[0][at];
  } else if constexpr (std::endian::native == std::endian::little && sizeof(Value) > 1) {
    // In the order of the bytes, which is that of a little-endian number.
    for (; at + kRows <= values.size(); at += kRows) JoinRows(planes_.data(), at, &values[at]);
  }
  for (; at < values.size(); ++at) {
    uint64_t value = 0;
    for (size_t plane = 0; plane < sizeof(Value); ++plane) {
      if (planes_[plane] != nullptr) value |= uint64_t{planes_[plane][at]} << (8 * plane);
    }
    values[at] = static_cast<Value>(value);
  }
  for (const uint8_t*& plane : planes_) {
    if (plane != nullptr) plane += values.size();
  }
}

void PlaneReader::Take(std::span<uint64_t> values) { TakeNarrow(values); }
void PlaneReader::TakeAs(std::span<uint8_t> values) { TakeNarrow(values); }
void PlaneReader::TakeAs(std::span<uint32_t> values) { TakeNarrow(values); }

}  // namespace blktape
