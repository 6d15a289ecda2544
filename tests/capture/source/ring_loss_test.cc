#include "capture/source/ring_loss.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "base/status.h"

namespace blktape {
namespace {

// per_cpu/cpu0/stats of Linux 6.18 after a flood into a ring of two pages.
constexpr char kStats[] =
    "entries: 86\n"
    "overrun: 1217\n"
    "commit overrun: 3\n"
    "bytes: 5748\n"
    "oldest event ts:  1613.976558\n"
    "now ts:  1620.100000\n"
    "dropped events: 40\n"
    "read events: 12\n";

TEST(RingStatsTest, AllThatTheKernelCallsLostIsSummed) {
  const Result<RingStats> stats = ParseRingStats(kStats);
  ASSERT_TRUE(stats.ok());
  EXPECT_EQ(stats->overrun, 1217u);
  EXPECT_EQ(stats->commit_overrun, 3u);
  EXPECT_EQ(stats->dropped, 40u);
  EXPECT_EQ(stats->lost(), 1260u);
}

TEST(RingStatsTest, TextWithoutAnOverrunIsRefused) {
  EXPECT_EQ(ParseRingStats("entries: 86\n").status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(ParseRingStats("").status().code(), StatusCode::kDataLoss);
}

TEST(RingStatsTest, OlderKernelsWithFewerLinesAreRead) {
  const Result<RingStats> stats = ParseRingStats("overrun: 7\n");
  ASSERT_TRUE(stats.ok());
  EXPECT_EQ(stats->lost(), 7u);
}

class RingLossAccountTest : public ::testing::Test {
 protected:
  uint64_t Gap(std::optional<uint64_t> stored) {
    return account_.OnGap(stored, [this] {
      ++asked_;
      return kernel_total_;
    });
  }

  RingLossAccount account_;
  uint64_t kernel_total_ = 0;
  int asked_ = 0;
};

TEST_F(RingLossAccountTest, ANumberInThePageIsTakenAsItIs) {
  kernel_total_ = 30;
  EXPECT_EQ(Gap(10), 10u);
  EXPECT_EQ(Gap(20), 20u);
  EXPECT_EQ(asked_, 0);
  EXPECT_EQ(account_.Rest(30), 0u);
}

TEST_F(RingLossAccountTest, AGapWithoutANumberTakesTheRunningTotal) {
  kernel_total_ = 10;
  EXPECT_EQ(Gap(10), 10u);
  kernel_total_ = 25;
  EXPECT_EQ(Gap(std::nullopt), 15u);
  EXPECT_EQ(account_.reported(), 25u);
}

TEST_F(RingLossAccountTest, WhatTheRunningTotalHadAlreadyIsNotCountedTwice) {
  // Lost: 15 before the page without a number, 5 after it, which the total already holds.
  kernel_total_ = 20;
  EXPECT_EQ(Gap(std::nullopt), 20u);
  EXPECT_EQ(Gap(5), 0u);
  kernel_total_ = 28;
  EXPECT_EQ(Gap(8), 8u);
  EXPECT_EQ(account_.Rest(28), 0u);
  EXPECT_EQ(account_.reported(), 28u);
}

TEST_F(RingLossAccountTest, LossThatNoPageToldOfIsTheRestAtTheEnd) {
  kernel_total_ = 4;
  EXPECT_EQ(Gap(4), 4u);
  EXPECT_EQ(account_.Rest(11), 7u);
  EXPECT_EQ(account_.Rest(11), 0u);
}

TEST_F(RingLossAccountTest, AGapThatTheKernelDoesNotKnowIsNone) {
  EXPECT_EQ(account_.OnClaim(1, 0), 0u);
  EXPECT_EQ(account_.OnClaim(5, 3), 3u);
  EXPECT_EQ(account_.OnClaim(2, 3), 0u);
  EXPECT_EQ(account_.OnClaim(2, 9), 2u);
  EXPECT_EQ(account_.Rest(9), 4u);
  EXPECT_EQ(account_.reported(), 9u);
}

}  // namespace
}  // namespace blktape
