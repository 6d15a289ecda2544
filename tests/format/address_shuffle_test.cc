#include "format/address_shuffle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

namespace blktape {
namespace {

constexpr uint64_t kPiece = 2048;  // sectors of 1 MiB

TEST(AddressShuffleTest, IslandsMoveWholeAndNeverOverlap) {
  AddressShuffle shuffle;
  // Islands of 1, 2 and 3 pieces, with gaps; the last begins within a piece.
  const std::vector<std::pair<uint64_t, uint64_t>> islands = {
      {0, 1 * kPiece}, {10 * kPiece, 2 * kPiece}, {40 * kPiece + 5, 2 * kPiece + 100}};
  for (const auto& [begin, sectors] : islands) shuffle.Touch(Lba(begin), sectors * 512);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    shuffle.Choose(seed);
    bool moved = false;  // of three, chance alone leaves all in their places for one seed in six
    EXPECT_EQ(shuffle.islands(), 3u);
    std::set<uint64_t> taken;
    for (const auto& [begin, sectors] : islands) {
      const uint64_t to = shuffle.Moved(Lba(begin)).sectors;
      moved |= to != begin;
      EXPECT_EQ(to % kPiece, begin % kPiece);  // alignment within a piece
      for (uint64_t i = 0; i < sectors; i += 100) {
        EXPECT_EQ(shuffle.Moved(Lba(begin + i)).sectors, to + i);
        EXPECT_TRUE(taken.insert(to + i).second);
      }
      EXPECT_LT(to + sectors, 43 * kPiece);  // not beyond where the last island ended
    }
    EXPECT_TRUE(moved) << "seed " << seed;
  }
}

TEST(AddressShuffleTest, OneIslandStays) {
  AddressShuffle shuffle;
  shuffle.Touch(Lba(5 * kPiece), 512);
  shuffle.Touch(Lba(6 * kPiece), 512);  // adjoins
  shuffle.Choose(1);
  EXPECT_EQ(shuffle.islands(), 1u);
  EXPECT_EQ(shuffle.Moved(Lba(5 * kPiece + 7)), Lba(5 * kPiece + 7));
}

TEST(AddressShuffleTest, TheSameSeedGivesTheSamePlaces) {
  AddressShuffle one, two;
  for (uint64_t i = 0; i < 100; ++i) {
    one.Touch(Lba(i * 7 * kPiece), 4096);
    two.Touch(Lba(i * 7 * kPiece), 4096);
  }
  one.Choose(42);
  two.Choose(42);
  for (uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(one.Moved(Lba(i * 7 * kPiece)), two.Moved(Lba(i * 7 * kPiece)));
  }
}

TEST(AddressShuffleTest, AddressesAtTheEndOfAllNumbersDoNotWrap) {
  AddressShuffle shuffle;
  shuffle.Touch(Lba(0), 4096);
  shuffle.Touch(Lba(UINT64_MAX), UINT64_MAX);
  shuffle.Touch(Lba(UINT64_MAX / 2), 0);
  shuffle.Choose(3);
  EXPECT_EQ(shuffle.islands(), 3u);
  (void)shuffle.Moved(Lba(UINT64_MAX));
}

}  // namespace
}  // namespace blktape
