#include "replay/outcome/payload.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/units.h"

namespace blktape {
namespace {

constexpr uint64_t kBlockBytes = 4096;
constexpr uint64_t kWordBytes = sizeof(uint64_t);
constexpr uint64_t kBlockWords = kBlockBytes / kWordBytes;
// 64 KiB and one block: fits in the second-level cache.
constexpr uint64_t kPoolWords = 8192 + kBlockWords;
constexpr uint64_t kDuplicates = 16;
constexpr size_t kStampBytes = 24;
constexpr uint32_t kStampMagic = 0x50415442;  // "BTAP"

// Additive recurrences with these steps spread evenly over the 64-bit numbers: the golden ratio,
// and one of Roberts' R2 sequence.
constexpr uint64_t kStepA = 0x9e3779b97f4a7c15u;
constexpr uint64_t kStepB = 0xc13fa9a902a6328fu;

// The finisher of splitmix64 (Vigna, public domain).
uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

template <typename T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <typename T>
void Store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

// The checksum of a sector without its bytes 16 to 24, which hold the checksum. Four independent
// chains, because a single one would wait for each of its multiplications.
uint64_t Checksum(const std::byte* sector) {
  constexpr uint64_t kPrime = 0x9fb21c651e98df25u;
  uint64_t lanes[4] = {Load<uint64_t>(sector), Load<uint64_t>(sector + kWordBytes), kStepA, kStepB};
  for (size_t at = kStampBytes; at < kSectorBytes; at += kWordBytes) {
    uint64_t& lane = lanes[(at / kWordBytes) % 4];
    lane = (lane ^ Load<uint64_t>(sector + at)) * kPrime;
    lane ^= lane >> 32;
  }
  uint64_t sum = 0;
  for (const uint64_t lane : lanes) sum = Mix(sum ^ lane) * kPrime;
  return sum;
}

void PutStamp(std::byte* sector_content, uint64_t sector, uint32_t number) {
  Store(sector_content, sector);
  Store(sector_content + 8, kStampMagic);
  Store(sector_content + 12, number);
  Store(sector_content + 16, Checksum(sector_content));
}

}  // namespace

Payload::Payload(const PayloadOptions& options) : options_(options), pool_(kPoolWords) {
  BLKTAPE_CHECK(options.compressible_percent <= 100 && options.dedupe_percent <= 100);
  uint64_t state = options.seed;
  for (uint64_t& word : pool_) word = Mix(state += kStepA);
}

void Payload::FillBlock(std::span<std::byte> block, uint64_t key) const {
  const uint64_t words = block.size() / kWordBytes;
  const uint64_t random_words =
      (words * (100 - options_.compressible_percent) + 50) / 100;  // rounded to nearest
  const uint64_t* const pool = pool_.data() + key % (kPoolWords - kBlockWords);
  std::byte* const out = block.data();
  for (uint64_t i = 0; i < random_words; ++i) Store(out + i * kWordBytes, pool[i] ^ key);
  // One repeated byte: fast compressors look at few places and miss longer periods.
  std::memset(out + random_words * kWordBytes, static_cast<int>(key % 255 + 1),
              (words - random_words) * kWordBytes);
  // Otherwise a block that compresses completely would be a duplicate of others.
  if (random_words == 0) Store(out, key);
}

void Payload::Fill(std::span<std::byte> buffer, uint64_t offset_bytes, uint32_t number) const {
  BLKTAPE_CHECK(buffer.size() % kSectorBytes == 0);
  if (options_.repeat) {
    std::memset(buffer.data(), static_cast<int>(number % 255 + 1), buffer.size());
  } else {
    const uint64_t share = (static_cast<uint64_t>(options_.dedupe_percent) << 32) / 100;
    uint64_t index = 0;
    for (uint64_t at = 0; at < buffer.size(); ++index) {
      const uint64_t to_grid = kBlockBytes - (offset_bytes + at) % kBlockBytes;
      const uint64_t bytes = std::min<uint64_t>(to_grid, buffer.size() - at);
      const uint64_t place = number * kStepA + index * kStepB;
      uint64_t key = Mix(options_.seed * kStepB + place + 1);
      // Chosen by an evenly spread sequence, not at random, so that short runs have the right
      // percentage too.
      const bool duplicate = bytes == kBlockBytes && !options_.stamp && (place >> 32) < share;
      if (duplicate) key = Mix(options_.seed + key % kDuplicates);
      FillBlock(buffer.subspan(at, bytes), key);
      at += bytes;
    }
  }
  if (!options_.stamp) return;
  for (uint64_t at = 0; at < buffer.size(); at += kSectorBytes) {
    PutStamp(buffer.data() + at, (offset_bytes + at) / kSectorBytes, number);
  }
}

std::optional<Payload::Stamp> Payload::ReadStamp(std::span<const std::byte> sector_content) {
  BLKTAPE_CHECK(sector_content.size() == kSectorBytes);
  const std::byte* const at = sector_content.data();
  if (Load<uint32_t>(at + 8) != kStampMagic || Load<uint64_t>(at + 16) != Checksum(at)) {
    return std::nullopt;
  }
  return Stamp{Load<uint64_t>(at), Load<uint32_t>(at + 12)};
}

bool Payload::CheckStamp(std::span<const std::byte> sector_content, uint64_t sector,
                         uint32_t number) {
  return ReadStamp(sector_content) == Stamp{sector, number};
}

}  // namespace blktape
