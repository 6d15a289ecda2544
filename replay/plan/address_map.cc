#include "replay/plan/address_map.h"

#include <algorithm>

#include "base/quantity.h"

namespace blktape {
namespace {

constexpr uint64_t kMebibyte = 1 << 20;

uint64_t RoundDown(uint64_t value, uint64_t grain) { return value / grain * grain; }

// The largest power of two up to 4096 that divides both: what a scaled address keeps.
uint64_t GrainOf(uint64_t start_bytes, uint64_t bytes) {
  const uint64_t bits = start_bytes | bytes | 4096;
  return bits & (~bits + 1);
}

}  // namespace

const char* RemapName(Remap remap) {
  switch (remap) {
    case Remap::kRefuse:
      return "refuse";
    case Remap::kOffset:
      return "offset";
    case Remap::kScale:
      return "scale";
    case Remap::kWrap:
      return "wrap";
  }
  return "";
}

Result<Remap> ParseRemap(std::string_view name) {
  for (const Remap remap : {Remap::kRefuse, Remap::kOffset, Remap::kScale, Remap::kWrap}) {
    if (name == RemapName(remap)) return remap;
  }
  return Status(StatusCode::kInvalidArgument,
                "remap \"" + std::string(name) + "\" is none of refuse, offset, scale, wrap");
}

AddressMap::AddressMap(const AddressMapOptions& options, uint64_t footprint_begin_bytes,
                       uint64_t footprint_end_bytes, uint64_t target_bytes, uint32_t block_bytes)
    : options_(options),
      footprint_end_bytes_(std::max<uint64_t>(footprint_end_bytes, 1)),
      target_bytes_(RoundDown(target_bytes, block_bytes)),
      block_bytes_(block_bytes) {
  if (options.remap == Remap::kOffset) {
    shift_bytes_ = options.offset_bytes ? static_cast<uint64_t>(*options.offset_bytes)
                                        : 0 - RoundDown(footprint_begin_bytes, kMebibyte);
  }
}

uint64_t AddressMap::MovedStart(uint64_t start_bytes, uint64_t bytes, uint64_t grain_bytes) const {
  uint64_t moved = start_bytes;
  switch (options_.remap) {
    case Remap::kRefuse:
      return start_bytes;
    case Remap::kOffset:
      return start_bytes + shift_bytes_;  // below zero becomes huge: refused
    case Remap::kScale:
      moved = RoundDown(static_cast<uint64_t>(static_cast<unsigned __int128>(start_bytes) *
                                              target_bytes_ / footprint_end_bytes_),
                        grain_bytes);
      break;
    case Remap::kWrap:
      moved = start_bytes % target_bytes_;
      break;
  }
  // An I/O that would cross the end of the target ends there instead.
  if (bytes <= target_bytes_ && moved > target_bytes_ - bytes) {
    moved = RoundDown(target_bytes_ - bytes, grain_bytes);
  }
  return moved;
}

Result<AddressMap::Place> AddressMap::Map(Lba lba, uint64_t bytes) const {
  const auto beyond = [&] {
    return Status(StatusCode::kFailedPrecondition,
                  "the request of " + std::to_string(bytes) + " bytes at LBA " +
                      std::to_string(lba.sectors) + " lies beyond the target's " +
                      FormatBytes(target_bytes_));
  };
  if (lba.sectors > INT64_MAX / kSectorBytes) return beyond();  // its bytes would wrap round
  if (target_bytes_ == 0) return beyond();     // smaller than a block: nothing fits, wrapped or not
  if (bytes > target_bytes_) return beyond();  // widened, it might wrap round to a few blocks
  const uint64_t start = lba.bytes();
  uint64_t grain = GrainOf(start, bytes);
  if (options_.align) grain = std::max<uint64_t>(grain, block_bytes_);
  Place place{.offset_bytes = MovedStart(start, bytes, grain), .bytes = bytes};
  place.moved = place.offset_bytes != start;
  if (place.offset_bytes % block_bytes_ != 0 || bytes % block_bytes_ != 0) {
    if (!options_.align) {
      return Status(StatusCode::kFailedPrecondition,
                    "the request of " + std::to_string(bytes) + " bytes at LBA " +
                        std::to_string(lba.sectors) + " is no whole blocks of " +
                        std::to_string(block_bytes_) +
                        " bytes of the target\n  try:  replay --align");
    }
    const uint64_t begin = RoundDown(place.offset_bytes, block_bytes_);
    const uint64_t end = RoundDown(place.offset_bytes + bytes + block_bytes_ - 1, block_bytes_);
    place.offset_bytes = begin;
    place.bytes = end - begin;
    place.widened = true;
  }
  if (place.bytes > target_bytes_ || place.offset_bytes > target_bytes_ - place.bytes) {
    return beyond();
  }
  return place;
}

}  // namespace blktape
