#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "format/io_record.h"

namespace blktape {

// Runs that follow each other replay the same records: a trace, or a part of it. A discard would
// leave blocks empty that a run reads later, where the recording read data; a drive answers that
// without looking. These are blocks (4 KiB) that
// - a run discards and then reads, and that the trace had written in between, in what the run
//   leaves out;
// - a run reads before it writes or discards them, and has discarded at its end: the next run would
//   read them so.
// Discards leave them out. Memory: some 400 B per 2 MiB that are read, 100 MiB at most: what is
// read beyond those pieces is not followed. Not thread-safe.
class KeptBlocks {
 public:
  static constexpr size_t kMostPieces = 262'144;
  explicit KeptBlocks(size_t most_pieces = kMostPieces) : most_pieces_(most_pieces) {}

  // What is a discard here: a write of zeroes and a secure erase, too.
  static bool Empties(Op op);

  // First each read of a run,
  void Follow(const IoRecord& read);
  // then all I/Os of the trace in their order, also those that runs leave out,
  void Add(const IoRecord& io, bool replayed);
  // and at their end, once.
  void Finish();

  // Makes a discard its longest part without such blocks (of equal ones the first); all other I/Os
  // stay as they are. False: no part remains.
  bool LeaveOut(IoRecord* discard) const;

 private:
  static constexpr uint64_t kBlockBytes = 4096;
  static constexpr uint64_t kPieceBlocks = 512;
  using Blocks = std::bitset<kPieceBlocks>;
  struct Piece {
    Blocks touched;     // by the run
    Blocks read_first;  // of those: before all else
    Blocks discarded;   // by the run, which has not written it since
    Blocks refilled;    // by what the run leaves out, since then
    Blocks kept;
  };
  using Place = std::pair<uint32_t, uint64_t>;  // device, block / kPieceBlocks

  // Calls what(piece, its blocks among [first, end)) for the pieces that are followed.
  template <typename What>
  void ForPieces(uint32_t device, uint64_t first, uint64_t end, const What& what);

  size_t most_pieces_;
  std::map<Place, Piece> pieces_;
};

}  // namespace blktape
