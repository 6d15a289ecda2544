#include "analysis/block_history.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "base/saturating.h"

namespace blktape {
namespace {

// One to one (splitmix64): two blocks never share a hash.
uint64_t HashOf(uint64_t key) {
  key += 0x9e3779b97f4a7c15;
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9;
  key = (key ^ (key >> 27)) * 0x94d049bb133111eb;
  return key ^ (key >> 31);
}

constexpr int kMostHalvings = 63;

}  // namespace

const uint64_t BlockHistoryBuilder::Salted::kSalt =
    (uint64_t{std::random_device{}()} << 32) | std::random_device{}();

void BlockHistoryBuilder::Add(int64_t at_ns, uint32_t device, uint64_t offset_bytes, uint64_t bytes,
                              bool write) {
  if (bytes == 0) return;
  const uint64_t end_bytes = SaturatingAdd(offset_bytes, std::min(bytes, kLongestBytes));
  const uint64_t first = offset_bytes / kBlockBytes;
  const uint64_t last = (end_bytes - 1) / kBlockBytes;
  for (uint64_t number = first; number <= last; ++number) {
    // 52 bits of block, 12 of device: no two of a real machine meet.
    const uint64_t hash = HashOf(number ^ (uint64_t{device} << 52));
    if (halvings_ > 0 && (hash >> (64 - halvings_)) != 0) continue;
    Block& block = blocks_[hash];
    if (!write) {
      if (block.writes == 0) block.read_first = true;
      block.read = true;
    } else {
      if (block.writes > 0) {
        ++block.overwrites;
        distance_.Add(std::max<int64_t>(0, at_ns - block.written_ns));
      }
      if (block.writes < UINT32_MAX) ++block.writes;
      block.written_ns = at_ns;
    }
    while (blocks_.size() > most_ && halvings_ < kMostHalvings) Halve();
  }
}

void BlockHistoryBuilder::Halve() {
  ++halvings_;
  std::erase_if(blocks_,
                [this](const auto& entry) { return (entry.first >> (64 - halvings_)) != 0; });
}

BlockHistory BlockHistoryBuilder::Finish() const {
  BlockHistory history;
  history.sampled_share = std::ldexp(1.0, -halvings_);
  for (const auto& [hash, block] : blocks_) {
    ++history.blocks;
    if (block.read) ++history.read_blocks;
    if (block.read_first) ++history.read_first_blocks;
    history.block_writes += block.writes;
    history.overwrites += block.overwrites;
    if (block.writes == 0) continue;
    ++history.written_blocks;
    ++history.blocks_by_writes[static_cast<size_t>(std::bit_width(block.writes - 1))];
  }
  history.overwrite_distance = distance_;
  return history;
}

}  // namespace blktape
