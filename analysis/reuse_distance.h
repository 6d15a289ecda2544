#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace blktape {

// How much else is touched before a 4 KiB block is touched again: of a cache that throws out what
// was used longest ago, a touch at distance d hits if it holds more than d bytes (Mattson 1970).
struct ReuseDistance {
  static constexpr size_t kClasses = 80;
  double sampled_share = 1;    // of all blocks, at the end; 1: all of them, the counts are exact
  uint64_t first_touches = 0;  // estimate, of blocks that were not touched before
  // Touches of a block again, by distance: [0] none, [k] 2^(k-1) <= blocks < 2^k. Estimates.
  std::array<uint64_t, kClasses> again{};

  // Of all touches those that find their block in such a cache of 2^k blocks, 0 to 1; 0 where
  // nothing was touched. k < kClasses.
  double HitShare(size_t k) const;
};

// By SHARDS with a sample of bounded size (Waldspurger, Park, Garthwaite, Ahmad 2015): of all
// blocks those are followed whose hash is small; whenever there are more than `most`, half are no
// longer, and from then on each that is stands for twice as many. Exact up to `most` blocks. Feed
// data requests in order of issue. Memory: some 1.5 MiB. Not thread-safe.
class ReuseDistanceBuilder {
 public:
  static constexpr uint64_t kBlockBytes = 4096;
  static constexpr size_t kMost = 16'384;
  // Of a longer request only the beginning is looked at, as FootprintMeter does.
  static constexpr uint64_t kLongestBytes = uint64_t{64} << 20;

  explicit ReuseDistanceBuilder(size_t most = kMost);
  void Add(uint32_t device, uint64_t offset_bytes, uint64_t bytes);
  ReuseDistance Finish() const;

 private:
  void Touch(uint64_t hash);
  // Places count from 1 in the order of the last touches of the blocks that are followed.
  void Mark(size_t place, int32_t change);
  uint64_t MarkedUpTo(size_t place) const;
  // Numbers the places anew, without gaps.
  void Compact();
  void Halve();

  size_t most_;
  int halvings_ = 0;
  std::unordered_map<uint64_t, size_t> places_;  // by hash, which is one to one
  std::vector<int32_t> tree_;                    // Fenwick's, of marks
  size_t next_ = 1;
  ReuseDistance result_;
};

}  // namespace blktape
