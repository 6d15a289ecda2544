#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "base/units.h"

namespace blktape {

// Moves what lies on a disk to other places, in a way that keeps what matters of where it lies.
//
// The disk is seen in pieces of 1 MiB (of 2, 4 ... where it is touched in more than 2^20 places).
// Pieces that are touched and adjoin are an island; an island and the gap behind it, a cell. The
// cells change places at random. So within an island every distance stays as it was: what was
// sequential, overlapped, was overwritten or read again is so still, and alignment up to a piece
// and the footprint are the same. What changes is where islands lie and how far they are from each
// other. Nothing lies beyond where the last island ended.
class AddressShuffle {
 public:
  // An I/O of one pass over the trace. Discards and the like are not seen: they span much that
  // nobody else touches, and would make one island of the whole disk.
  void Touch(Lba lba, uint64_t bytes);

  // After the last Touch: chooses the places. The same seed and trace give the same places.
  void Choose(uint64_t seed);

  // Where `lba` lies now.
  Lba Moved(Lba lba) const;
  // How many islands there are: with one, nothing has moved.
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
