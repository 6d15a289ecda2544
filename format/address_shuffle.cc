#include "format/address_shuffle.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace blktape {

void AddressShuffle::Touch(Lba lba, uint64_t bytes) {
  const uint64_t sectors = std::max<uint64_t>((bytes + kSectorBytes - 1) / kSectorBytes, 1);
  const uint64_t last =
      lba.sectors > UINT64_MAX - sectors ? UINT64_MAX - 1 : lba.sectors + sectors - 1;
  uint64_t begin = lba.sectors / piece_sectors_;
  uint64_t end = last / piece_sectors_ + 1;
  // Overlapping and adjacent intervals become one.
  auto it = intervals_.upper_bound(begin);
  if (it != intervals_.begin() && std::prev(it)->second >= begin) --it;
  while (it != intervals_.end() && it->first <= end) {
    begin = std::min(begin, it->first);
    end = std::max(end, it->second);
    it = intervals_.erase(it);
  }
  intervals_.emplace(begin, end);
  if (intervals_.size() > kMostIntervals) Coarsen();
}

void AddressShuffle::Coarsen() {
  piece_sectors_ *= 2;
  std::map<uint64_t, uint64_t> finer;
  finer.swap(intervals_);
  for (const auto& [begin, end] : finer) {
    const uint64_t b = begin / 2;
    const uint64_t e = (end + 1) / 2;
    if (!intervals_.empty() && intervals_.rbegin()->second >= b) {
      intervals_.rbegin()->second = std::max(intervals_.rbegin()->second, e);
    } else {
      intervals_.emplace_hint(intervals_.end(), b, e);
    }
  }
}

void AddressShuffle::Choose(uint64_t seed) {
  cells_.clear();
  for (const auto& [begin, end] : intervals_) cells_.push_back({begin, begin});
  if (cells_.size() < 2) return;
  // The gap before the first island moves with it; there is no gap after the last one.
  cells_.front().begin = 0;
  const uint64_t end = intervals_.rbegin()->second;
  const auto length = [&](size_t i) {
    return (i + 1 < cells_.size() ? cells_[i + 1].begin : end) - cells_[i].begin;
  };
  std::vector<size_t> order(cells_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937_64 random(seed);
  // Of few islands chance leaves each in its place now and then: whoever asked for other places
  // would get the old ones.
  while (std::is_sorted(order.begin(), order.end())) {
    // The Fisher-Yates shuffle. Not std::shuffle, whose result is implementation-defined.
    for (size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random() % (i + 1)]);
  }
  uint64_t at = 0;
  for (const size_t cell : order) {
    const uint64_t pieces = length(cell);
    cells_[cell].moved_begin = at;
    at += pieces;
  }
}

Lba AddressShuffle::Moved(Lba lba) const {
  const uint64_t piece = lba.sectors / piece_sectors_;
  auto cell = std::upper_bound(cells_.begin(), cells_.end(), piece,
                               [](uint64_t p, const Cell& c) { return p < c.begin; });
  if (cell == cells_.begin()) return lba;
  --cell;
  // Nothing beyond the last island was touched; an address there (of a discard) stays.
  if (intervals_.empty() || piece >= intervals_.rbegin()->second) return lba;
  return Lba(lba.sectors - cell->begin * piece_sectors_ + cell->moved_begin * piece_sectors_);
}

}  // namespace blktape
