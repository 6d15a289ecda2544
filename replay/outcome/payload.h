#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace blktape {

struct PayloadOptions {
  // Percentage of each write that compresses to almost nothing: 0 (random) to 100.
  uint32_t compressible_percent = 0;
  // Percentage of whole, aligned 4 KiB blocks of the target that repeat one of 16 contents.
  uint32_t dedupe_percent = 0;
  // Each write is one repeated byte, a different one in each write, as in Iometer. Excludes the two
  // options above.
  bool repeat = false;
  // Each sector has a Stamp. It takes 24 of 512 bytes, so the percentages and `repeat` are not
  // exact, and no block is ever a duplicate.
  bool stamp = false;
  // The same seed gives the same bytes.
  uint64_t seed = 1;
};

// Makes the content of writes. By default no two sectors are equal and nothing compresses: drives
// that compress or deduplicate would otherwise look faster than they are. The content is computed
// from a pool of random words and a key per block, at several gigabytes per second, so that it
// never limits the rate. Thread-safe.
class Payload {
 public:
  explicit Payload(const PayloadOptions& options);

  // Fills `buffer`, whose size is a multiple of 512, with the content of write `number` at
  // `offset_bytes` of its target.
  void Fill(std::span<std::byte> buffer, uint64_t offset_bytes, uint32_t number) const;

  // The first 24 bytes of a stamped sector, all little endian: the address in sectors (8 bytes),
  // "BTAP", the number of the write (4), and a checksum of the other 504 bytes (8).
  struct Stamp {
    uint64_t sector = 0;
    uint32_t number = 0;
    bool operator==(const Stamp&) const = default;
  };
  // The stamp of a 512-byte sector; absent if there is none or its checksum is wrong.
  static std::optional<Stamp> ReadStamp(std::span<const std::byte> sector_content);
  // Whether these 512 bytes are the content of write `number` at `sector`.
  static bool CheckStamp(std::span<const std::byte> sector_content, uint64_t sector,
                         uint32_t number);

 private:
  void FillBlock(std::span<std::byte> block, uint64_t key) const;

  const PayloadOptions options_;
  std::vector<uint64_t> pool_;
};

}  // namespace blktape
