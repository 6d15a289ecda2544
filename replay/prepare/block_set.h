#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>

namespace blktape {

// A set of 4096-byte blocks of a device: one bit each, in pieces that are there only where
// something was set. Memory: 32 MiB for each TiB touched everywhere. Not thread-safe.
class BlockSet {
 public:
  static constexpr uint64_t kBlockBytes = 4096;

  // Blocks [first, end).
  void Insert(uint64_t first, uint64_t end);
  bool Contains(uint64_t block) const;
  uint64_t size() const { return size_; }

  // The first run of consecutive blocks that begins at `from` or later, cut to `most` blocks;
  // false if there is none.
  bool NextRun(uint64_t from, uint64_t most, uint64_t* first, uint64_t* end) const;

 private:
  static constexpr uint64_t kPieceBlocks = 32768;
  using Piece = std::array<uint64_t, kPieceBlocks / 64>;
  std::map<uint64_t, std::unique_ptr<Piece>> pieces_;  // by block / kPieceBlocks
  uint64_t size_ = 0;
};

}  // namespace blktape
