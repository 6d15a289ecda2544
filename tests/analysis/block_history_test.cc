#include "analysis/block_history.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace blktape {
namespace {

constexpr uint64_t kBlock = 4096;

TEST(BlockHistoryTest, TellsWhatWasReadFirstAndWhatWasOverwritten) {
  BlockHistoryBuilder builder;
  builder.Add(0, 0, 0, 2 * kBlock, /*write=*/false);          // blocks 0, 1: read first
  builder.Add(10, 0, kBlock, 2 * kBlock, /*write=*/true);     // blocks 1, 2: written
  builder.Add(40, 0, 2 * kBlock, kBlock, /*write=*/true);     // block 2 again, after 30 ns
  builder.Add(50, 0, 2 * kBlock, kBlock, /*write=*/false);    // block 2 read after it was written
  builder.Add(60, 1, 2 * kBlock, kBlock, /*write=*/true);     // block 2 of another device
  builder.Add(70, 0, 5 * kBlock + 512, 512, /*write=*/true);  // a part of block 5 is block 5
  const BlockHistory history = builder.Finish();
  EXPECT_EQ(history.sampled_share, 1);
  EXPECT_EQ(history.blocks, 5u);
  EXPECT_EQ(history.read_blocks, 3u);
  EXPECT_EQ(history.read_first_blocks, 2u);
  EXPECT_EQ(history.written_blocks, 4u);
  EXPECT_EQ(history.block_writes, 5u);
  EXPECT_EQ(history.overwrites, 1u);
  EXPECT_EQ(history.blocks_by_writes[0], 3u);  // once
  EXPECT_EQ(history.blocks_by_writes[1], 1u);  // twice
  EXPECT_EQ(history.overwrite_distance.count(), 1u);
  EXPECT_EQ(history.overwrite_distance.max_ns(), 30);
}

TEST(BlockHistoryTest, MoreBlocksThanItFollowsMakeASampleOfThem) {
  BlockHistoryBuilder builder(/*most=*/1'000);
  for (int round = 0; round < 2; ++round) {
    for (uint64_t block = 0; block < 64'000; ++block) {
      builder.Add(round, 0, block * kBlock, kBlock, /*write=*/true);
    }
  }
  const BlockHistory history = builder.Finish();
  EXPECT_LE(history.blocks, 1'000u);
  EXPECT_GE(history.blocks, 300u);
  // 64,000 blocks need at least six halvings for 1,000 of them.
  EXPECT_LE(history.sampled_share, 1.0 / 64);
  EXPECT_GE(history.sampled_share, 1.0 / 256);
  // Each block was written twice, whichever are followed.
  EXPECT_EQ(history.blocks_by_writes[1], history.blocks);
  EXPECT_EQ(history.overwrites * 2, history.block_writes);
}

}  // namespace
}  // namespace blktape
