#pragma once

#include <compare>
#include <cstdint>

namespace blktape {

// A byte count or an offset is a uint64_t named `..._bytes`; a time or a duration is an int64_t
// named `..._ns`. An address in sectors is a separate type, because confusing it with bytes would
// write to the wrong place of a disk.

inline constexpr uint64_t kSectorBytes = 512;

// A logical block address: counts 512-byte sectors everywhere, whatever the device's block size.
struct Lba {
  uint64_t sectors = 0;

  constexpr Lba() = default;
  constexpr explicit Lba(uint64_t s) : sectors(s) {}
  // Saturates: an address beyond every device must not wrap around to a valid one.
  constexpr uint64_t bytes() const {
    return sectors > UINT64_MAX / kSectorBytes ? UINT64_MAX : sectors * kSectorBytes;
  }
  constexpr auto operator<=>(const Lba&) const = default;
};

inline constexpr int64_t kNanosPerMicro = 1'000;
inline constexpr int64_t kNanosPerMilli = 1'000'000;
inline constexpr int64_t kNanosPerSecond = 1'000'000'000;

}  // namespace blktape
