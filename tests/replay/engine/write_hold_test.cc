#include "replay/engine/write_hold.h"

#include <gtest/gtest.h>

#include <optional>

#include "base/units.h"

namespace blktape {
namespace {

constexpr int64_t kUs = kNanosPerMicro;

TEST(WriteHoldTest, WithoutAFlushNothingIsHeld) {
  EXPECT_FALSE(WriteHold().Holds(0, 0, std::nullopt));
}

TEST(WriteHoldTest, AWriteKeepsItsDistanceFromTheFlush) {
  WriteHold hold;
  hold.Handed(1'000 * kUs);
  EXPECT_TRUE(hold.Holds(1'010 * kUs, 1'010 * kUs, std::nullopt));
  EXPECT_TRUE(hold.Holds(1'010 * kUs, 1'069 * kUs, 1'060 * kUs));
  EXPECT_FALSE(hold.Holds(1'010 * kUs, 1'070 * kUs, 1'060 * kUs));
}

TEST(WriteHoldTest, ButNoMoreThanTheFlushNeedsToReachTheDriver) {
  WriteHold hold;
  hold.Handed(1'000 * kUs);
  EXPECT_TRUE(hold.Holds(1'055 * kUs, 1'099 * kUs, 1'060 * kUs));
  EXPECT_FALSE(hold.Holds(1'055 * kUs, 1'100 * kUs, 1'060 * kUs));
  EXPECT_FALSE(hold.Holds(1'150 * kUs, 1'150 * kUs, 1'060 * kUs)) << "it is there already";
}

TEST(WriteHoldTest, AThreadThatDoesNotComeToItHoldsNothingUpForLong) {
  WriteHold hold;
  hold.Handed(1'000 * kUs);
  EXPECT_TRUE(hold.Holds(1'010 * kUs, 1'299 * kUs, std::nullopt));
  EXPECT_FALSE(hold.Holds(1'010 * kUs, 1'300 * kUs, std::nullopt));
}

TEST(WriteHoldTest, TheLatestFlushCounts) {
  WriteHold hold;
  hold.Handed(1'000 * kUs);
  hold.Handed(1'200 * kUs);
  EXPECT_TRUE(hold.Holds(1'210 * kUs, 1'400 * kUs, std::nullopt));
}

}  // namespace
}  // namespace blktape
