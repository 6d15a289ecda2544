#pragma once

#include <compare>
#include <cstdint>

namespace blktape {

// A byte count or an offset is a uint64_t named `..._bytes`; a time or a duration is an int64_t
// named `..._ns`. An address in sectors is a type of its own, since mixing it up with bytes writes
// to the wrong place of somebody's disk.

inline constexpr uint64_t kSectorBytes = 512;

// A logical block address: counts 512-byte sectors everywhere, whatever the device's block size.
struct Lba {
  uint64_t sectors = 0;

  constexpr Lba() = default;
  constexpr explicit Lba(uint64_t s) : sectors(s) {}
  // An address no device has must not wrap round to one that it has: it ends at the last byte.
  constexpr uint64_t bytes() const {
    return sectors > UINT64_MAX / kSectorBytes ? UINT64_MAX : sectors * kSectorBytes;
  }
  constexpr auto operator<=>(const Lba&) const = default;
};

inline constexpr int64_t kNanosPerMicro = 1'000;
inline constexpr int64_t kNanosPerMilli = 1'000'000;
inline constexpr int64_t kNanosPerSecond = 1'000'000'000;

}  // namespace blktape
