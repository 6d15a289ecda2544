#include "replay/prepare/block_set.h"

#include <algorithm>
#include <bit>

namespace blktape {

void BlockSet::Insert(uint64_t first, uint64_t end) {
  while (first < end) {
    std::unique_ptr<Piece>& piece = pieces_[first / kPieceBlocks];
    if (piece == nullptr) piece = std::make_unique<Piece>(Piece{});
    const uint64_t piece_end = std::min(end, (first / kPieceBlocks + 1) * kPieceBlocks);
    while (first < piece_end) {
      uint64_t& word = (*piece)[first % kPieceBlocks / 64];
      const uint64_t in_word = std::min<uint64_t>(piece_end - first, 64 - first % 64);
      const uint64_t ones = in_word == 64 ? ~uint64_t{0} : (uint64_t{1} << in_word) - 1;
      const uint64_t mask = ones << (first % 64);
      size_ += std::popcount(mask & ~word);
      word |= mask;
      first += in_word;
    }
  }
}

bool BlockSet::Contains(uint64_t block) const {
  const auto found = pieces_.find(block / kPieceBlocks);
  if (found == pieces_.end()) return false;
  return ((*found->second)[block % kPieceBlocks / 64] >> (block % 64)) & 1;
}

bool BlockSet::NextRun(uint64_t from, uint64_t most, uint64_t* first, uint64_t* end) const {
  for (auto it = pieces_.lower_bound(from / kPieceBlocks); it != pieces_.end(); ++it) {
    const uint64_t base = it->first * kPieceBlocks;
    uint64_t at = std::max(from, base) - base;
    while (at < kPieceBlocks) {
      const uint64_t word = (*it->second)[at / 64] >> (at % 64);
      if (word == 0) {
        at = (at / 64 + 1) * 64;
        continue;
      }
      *first = base + at + std::countr_zero(word);
      *end = *first + 1;
      while (*end - *first < most && Contains(*end)) ++*end;
      return true;
    }
  }
  return false;
}

}  // namespace blktape
