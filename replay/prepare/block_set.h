#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>

namespace blktape {

// A set of 4096-byte blocks of a device: one bit per block, in pieces that are allocated when a bit
// in them is first set. Memory: 32 MiB per TiB if blocks everywhere are set. Not thread-safe.
class BlockSet {
 public:
  static constexpr uint64_t kBlockBytes = 4096;

  // Adds the blocks [first, end).
  void Insert(uint64_t first, uint64_t end);
  bool Contains(uint64_t block) const;
  uint64_t size() const { return size_; }

  // Finds the first run of consecutive blocks that begins at `from` or later, limited to `most`
  // blocks. False if there is none.
  bool NextRun(uint64_t from, uint64_t most, uint64_t* first, uint64_t* end) const;

 private:
  static constexpr uint64_t kPieceBlocks = 32768;
  using Piece = std::array<uint64_t, kPieceBlocks / 64>;
  std::map<uint64_t, std::unique_ptr<Piece>> pieces_;  // key: block / kPieceBlocks
  uint64_t size_ = 0;
};

}  // namespace blktape
