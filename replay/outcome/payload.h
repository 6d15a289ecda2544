#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace blktape {

struct PayloadOptions {
  // Share of each write that compresses to nearly nothing: 0 (random) to 100.
  uint32_t compressible_percent = 0;
  // Share of whole 4 KiB blocks, on the target's 4 KiB grid, that repeat one of 16 contents.
  uint32_t dedupe_percent = 0;
  // One repeated byte, another in each write, as Iometer did it: excludes the two above.
  bool repeat = false;
  // Each sector bears a Stamp. It takes 24 of 512 bytes, so that neither the shares nor repeat hold
  // exactly; nothing is ever a duplicate then.
  bool stamp = false;
  // Equal seeds give equal bytes.
  uint64_t seed = 1;
};

// What writes carry. By default no two sectors are alike and nothing compresses, since many drives
// compress or deduplicate and would look faster than they are. Made from a pool of random words and
// a key of each block, at several gigabytes a second, so that it never limits the rate.
// Thread-safe.
class Payload {
 public:
  explicit Payload(const PayloadOptions& options);

  // Fills `buffer`, whose size is a multiple of 512, with what write `number` puts at
  // `offset_bytes` of its target.
  void Fill(std::span<std::byte> buffer, uint64_t offset_bytes, uint32_t number) const;

  // What the first 24 bytes of a stamped sector say, all little endian: the address in sectors (8
  // bytes), "BTAP", the number of the write (4), and a checksum of the other 504 bytes (8).
  struct Stamp {
    uint64_t sector = 0;
    uint32_t number = 0;
    bool operator==(const Stamp&) const = default;
  };
  // The stamp of 512 bytes; absent if there is none or its checksum is wrong.
  static std::optional<Stamp> ReadStamp(std::span<const std::byte> sector_content);
  // Whether these 512 bytes are what write `number` put at `sector`.
  static bool CheckStamp(std::span<const std::byte> sector_content, uint64_t sector,
                         uint32_t number);

 private:
  void FillBlock(std::span<std::byte> block, uint64_t key) const;

  const PayloadOptions options_;
  std::vector<uint64_t> pool_;
};

}  // namespace blktape
