#include "replay/prepare/reads_before_writes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>
#include <vector>

namespace blktape {
namespace {

using testing::ElementsAre;
using testing::Pair;

std::vector<std::pair<uint64_t, uint64_t>> Runs(const BlockSet& set, uint64_t most = UINT64_MAX) {
  std::vector<std::pair<uint64_t, uint64_t>> runs;
  uint64_t at = 0;
  uint64_t first = 0;
  uint64_t end = 0;
  while (set.NextRun(at, most, &first, &end)) {
    runs.emplace_back(first, end);
    at = end;
  }
  return runs;
}

TEST(BlockSetTest, RunsReachAcrossItsPieces) {
  BlockSet set;
  set.Insert(32'760, 32'800);
  set.Insert(5, 6);
  set.Insert(uint64_t{1} << 40, (uint64_t{1} << 40) + 2);
  EXPECT_EQ(set.size(), 43u);
  EXPECT_THAT(Runs(set), ElementsAre(Pair(5, 6), Pair(32'760, 32'800),
                                     Pair(uint64_t{1} << 40, (uint64_t{1} << 40) + 2)));
  EXPECT_THAT(Runs(set, /*most=*/30),
              ElementsAre(Pair(5, 6), Pair(32'760, 32'790), Pair(32'790, 32'800),
                          Pair(uint64_t{1} << 40, (uint64_t{1} << 40) + 2)));
}

TEST(BlockSetTest, AgreesWithASetOfNumbers) {
  BlockSet set;
  std::set<uint64_t> expected;
  std::mt19937_64 random(3);
  for (int i = 0; i < 300; ++i) {
    const uint64_t first = random() % 70'000;
    const uint64_t end = first + random() % 200;
    set.Insert(first, end);
    for (uint64_t block = first; block < end; ++block) expected.insert(block);
  }
  EXPECT_EQ(set.size(), expected.size());
  for (uint64_t block = 0; block < 70'300; ++block) {
    ASSERT_EQ(set.Contains(block), expected.contains(block)) << block;
  }
}

TEST(ReadsBeforeWritesTest, OnlyWhatIsReadFirstIsNeeded) {
  ReadsBeforeWrites map;
  map.Add(Op::kWrite, 0, 8192);           // blocks 0 and 1
  map.Add(Op::kRead, 4096, 8192);         // block 1 was written, block 2 was not
  map.Add(Op::kDiscard, 5 * 4096, 4096);  // block 5 holds nothing in the recording either
  map.Add(Op::kRead, 5 * 4096, 4096);
  map.Add(Op::kRead, 7 * 4096 + 512, 512);  // part of block 7
  map.Add(Op::kWrite, 7 * 4096, 4096);
  map.Add(Op::kFlush, 0, 0);
  EXPECT_THAT(Runs(map.blocks()), ElementsAre(Pair(2, 3), Pair(7, 8)));
}

TEST(ReadsBeforeWritesTest, ABlockWrittenInPartIsNotWritten) {
  ReadsBeforeWrites map;
  map.Add(Op::kWrite, 512, 8192);  // block 1 whole, 0 and 2 in part
  map.Add(Op::kRead, 0, 12288);
  EXPECT_THAT(Runs(map.blocks()), ElementsAre(Pair(0, 1), Pair(2, 3)));
}

}  // namespace
}  // namespace blktape
