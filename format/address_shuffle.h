#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "base/units.h"

namespace blktape {

// Moves the addresses of a disk to other places, and keeps their relevant relations.
//
// The disk is divided into pieces of 1 MiB (or 2, 4 ... if more than 2^20 pieces are touched).
// Adjacent touched pieces form an island; an island and the gap after it form a cell. The cells are
// permuted at random. So all distances within an island stay the same: I/Os that were sequential,
// overlapped, or read or overwrote the same data still do. Alignment up to a piece and the
// footprint are also the same. The places of islands and the distances between islands change. No
// address moves beyond the end of the former last island.
class AddressShuffle {
 public:
  // Call for each I/O in a first pass over the trace, but not for discards and similar operations:
  // they cover large ranges that no other I/O touches, and would make the whole disk one island.
  void Touch(Lba lba, uint64_t bytes);

  // Chooses the new places, of two or more islands others than before for some. Call after the last
  // Touch. The same seed and trace give the same places.
  void Choose(uint64_t seed);

  // The new address of `lba`.
  Lba Moved(Lba lba) const;
  // The number of islands. With a single one, nothing moves.
  uint64_t islands() const { return cells_.size(); }

 private:
  static constexpr size_t kMostIntervals = size_t{1} << 20;
  struct Cell {
    uint64_t begin = 0;  // pieces
    uint64_t moved_begin = 0;
  };

  void Coarsen();

  uint64_t piece_sectors_ = 2048;
  std::map<uint64_t, uint64_t> intervals_;  // touched pieces: [begin, end)
  std::vector<Cell> cells_;                 // by begin; the first begins at 0
};

}  // namespace blktape
