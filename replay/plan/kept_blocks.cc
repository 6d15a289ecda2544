#include "replay/plan/kept_blocks.h"

#include <algorithm>

#include "base/saturating.h"
#include "base/units.h"

namespace blktape {
namespace {

// A plan refuses longer ones.
constexpr uint64_t kLongestReadBytes = uint64_t{1} << 30;

}  // namespace

bool KeptBlocks::Empties(Op op) {
  return op == Op::kDiscard || op == Op::kWriteZeroes || op == Op::kSecureErase;
}

template <typename What>
void KeptBlocks::ForPieces(uint32_t device, uint64_t first, uint64_t end, const What& what) {
  const Place behind{device, (end + kPieceBlocks - 1) / kPieceBlocks};
  for (auto it = pieces_.lower_bound({device, first / kPieceBlocks});
       it != pieces_.end() && it->first < behind; ++it) {
    const uint64_t base = it->first.second * kPieceBlocks;
    const uint64_t from = std::max(first, base) - base;
    const uint64_t to = std::min(end - base, kPieceBlocks);
    Blocks those;
    those.set();
    what(&it->second, (those << from) & (those >> (kPieceBlocks - to)));
  }
}

void KeptBlocks::Follow(const IoRecord& read) {
  if (!read.lba || read.bytes == 0 || read.bytes > kLongestReadBytes) return;
  const uint64_t first = read.lba->bytes() / kBlockBytes;
  const uint64_t last = (SaturatingAdd(read.lba->bytes(), read.bytes) - 1) / kBlockBytes;
  for (uint64_t piece = first / kPieceBlocks; piece <= last / kPieceBlocks; ++piece) {
    if (pieces_.size() >= most_pieces_) return;
    pieces_.try_emplace({read.device, piece});
  }
}

void KeptBlocks::Add(const IoRecord& io, bool replayed) {
  if (!io.lba || io.bytes == 0) return;
  const uint64_t begin_bytes = io.lba->bytes();
  const uint64_t end_bytes = SaturatingAdd(begin_bytes, io.bytes);
  // Blocks that it touches, and those that lie within it.
  const uint64_t first = begin_bytes / kBlockBytes;
  const uint64_t end = (end_bytes - 1) / kBlockBytes + 1;
  const uint64_t first_whole = first + (begin_bytes % kBlockBytes != 0 ? 1 : 0);
  const uint64_t end_whole = std::max(end_bytes / kBlockBytes, first_whole);
  if (Empties(io.op)) {
    ForPieces(io.device, first_whole, end_whole, [replayed](Piece* piece, const Blocks& those) {
      piece->refilled &= ~those;
      if (!replayed) return;
      piece->touched |= those;
      piece->discarded |= those;
    });
  } else if (io.op == Op::kWrite && replayed) {
    ForPieces(io.device, first_whole, end_whole, [](Piece* piece, const Blocks& those) {
      piece->touched |= those;
      piece->discarded &= ~those;
    });
  } else if (io.op == Op::kWrite) {
    ForPieces(io.device, first, end,
              [](Piece* piece, const Blocks& those) { piece->refilled |= those; });
  } else if (io.op == Op::kRead && replayed) {
    ForPieces(io.device, first, end, [](Piece* piece, const Blocks& those) {
      piece->read_first |= those & ~piece->touched;
      piece->touched |= those;
      piece->kept |= those & piece->discarded & piece->refilled;
    });
  }
}

void KeptBlocks::Finish() {
  for (auto& [place, piece] : pieces_) piece.kept |= piece.read_first & piece.discarded;
  std::erase_if(pieces_, [](const auto& one) { return one.second.kept.none(); });
}

bool KeptBlocks::LeaveOut(IoRecord* discard) const {
  if (!Empties(discard->op) || !discard->lba || discard->bytes == 0) return true;
  const uint64_t begin_bytes = discard->lba->bytes();
  const uint64_t end_bytes = SaturatingAdd(begin_bytes, discard->bytes);
  uint64_t best_bytes = 0;
  uint64_t best_begin = begin_bytes;
  uint64_t from = begin_bytes;  // of the part that has been seen last
  const auto part_ends = [&](uint64_t at) {
    if (at > from && at - from > best_bytes) {
      best_begin = from;
      best_bytes = at - from;
    }
  };
  const uint64_t last_piece = (end_bytes - 1) / kBlockBytes / kPieceBlocks;
  for (auto it = pieces_.lower_bound({discard->device, begin_bytes / kBlockBytes / kPieceBlocks});
       it != pieces_.end() && it->first <= Place{discard->device, last_piece}; ++it) {
    for (uint64_t i = 0; i < kPieceBlocks; ++i) {
      if (!it->second.kept[i]) continue;
      const uint64_t block_bytes = (it->first.second * kPieceBlocks + i) * kBlockBytes;
      if (block_bytes + kBlockBytes <= begin_bytes || block_bytes >= end_bytes) continue;
      part_ends(block_bytes);
      from = block_bytes + kBlockBytes;
    }
  }
  part_ends(end_bytes);
  discard->lba = Lba(best_begin / kSectorBytes);
  discard->bytes = best_bytes;
  return best_bytes > 0;
}

}  // namespace blktape
