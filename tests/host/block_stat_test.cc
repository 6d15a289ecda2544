#include "host/block_stat.h"

#include <gtest/gtest.h>

namespace blktape {
namespace {

TEST(BlockStatTest, TheSeventeenFieldsOfThisCenturyAreReadByTheirPlace) {
  // Reads, merged, sectors, ms; writes likewise; in flight, busy, waited; discards likewise;
  // flushes.
  const auto stat = ParseBlockStat("  101 2 808 4 205 6 1640 8 0 9 10 303 12 2424 14 405 16\n");
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->reads, 101u);
  EXPECT_EQ(stat->read_sectors, 808u);
  EXPECT_EQ(stat->read_ms, 4u);
  EXPECT_EQ(stat->writes, 205u);
  EXPECT_EQ(stat->write_sectors, 1640u);
  EXPECT_EQ(stat->write_ms, 8u);
  EXPECT_EQ(stat->discards, 303u);
  EXPECT_EQ(stat->discard_sectors, 2424u);
  EXPECT_EQ(stat->flushes, 405u);
  EXPECT_EQ(stat->sectors(), 4872u);
}

TEST(BlockStatTest, AnOldKernelHasElevenFields) {
  const auto stat = ParseBlockStat("1 2 3 4 5 6 7 8 9 10 11");
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->sectors(), 10u);
  EXPECT_EQ(stat->discards, 0u);
}

TEST(BlockStatTest, WhatIsNoStatisticIsNone) {
  EXPECT_FALSE(ParseBlockStat("").has_value());
  EXPECT_FALSE(ParseBlockStat("1 2 3 4 5 6 7 8 9 10").has_value());
  EXPECT_FALSE(ParseBlockStat("1 2 3 4 5 6 7 8 9 10 x").has_value());
  EXPECT_FALSE(ReadBlockStat("/nowhere").has_value());
}

}  // namespace
}  // namespace blktape
