#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/units.h"

namespace blktape {

// What to do where the recorded addresses do not fit the target.
enum class Remap {
  kRefuse,  // nothing is moved: the footprint must fit
  kOffset,  // every address is moved by the same distance
  kScale,   // addresses are multiplied by target size / end of the footprint
  kWrap,    // addresses modulo the target's size
};
const char* RemapName(Remap remap);
Result<Remap> ParseRemap(std::string_view name);

struct AddressMapOptions {
  Remap remap = Remap::kRefuse;
  // kOffset: added to every address. Absent: the footprint's beginning (rounded down to 1 MiB)
  // moves to the start of the target.
  std::optional<int64_t> offset_bytes;
  // Requests that are no whole blocks of the target are widened to whole ones instead of refused.
  bool align = false;
};

// Where the requests of one recorded device lie on one target. Pure.
class AddressMap {
 public:
  // The footprint is [begin, end) in bytes on the recorded device.
  AddressMap(const AddressMapOptions& options, uint64_t footprint_begin_bytes,
             uint64_t footprint_end_bytes, uint64_t target_bytes, uint32_t block_bytes);

  struct Place {
    uint64_t offset_bytes = 0;
    uint64_t bytes = 0;
    bool moved = false;  // remapped
    bool widened = false;
  };
  // kFailedPrecondition: beyond the target, or no whole blocks.
  Result<Place> Map(Lba lba, uint64_t bytes) const;

 private:
  uint64_t MovedStart(uint64_t start_bytes, uint64_t bytes, uint64_t grain_bytes) const;

  AddressMapOptions options_;
  uint64_t footprint_end_bytes_;
  uint64_t target_bytes_;
  uint32_t block_bytes_;
  uint64_t shift_bytes_ = 0;  // added modulo 2^64: a move towards the start is a huge number
};

}  // namespace blktape
