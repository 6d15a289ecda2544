#include "cli/time_left.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace blktape {
namespace {

constexpr int64_t kMinute = 60 * kNanosPerSecond;

TEST(TimeLeftTest, OfOneCampaignItIsWhatThatToldLessWhatHasPassed) {
  TimeLeft left;
  EXPECT_EQ(left.Text(5 * kMinute), "");
  left.Tell(0, {.ns = 10 * kMinute}, 5 * kMinute);
  EXPECT_EQ(left.Text(5 * kMinute), ", about 10 min 00 s left in all");
  EXPECT_EQ(left.Text(8 * kMinute), ", about 7 min 00 s left in all");
  // A real cycle took longer than the reference's.
  left.Tell(0, {.ns = 30 * kMinute}, 8 * kMinute);
  EXPECT_EQ(left.Text(9 * kMinute), ", about 29 min 00 s left in all");
  EXPECT_EQ(left.Text(39 * kMinute), ", longer than expected");
}

TEST(TimeLeftTest, CampaignsThatTakeTurnsAddUpAndOneMovesAtATime) {
  TimeLeft left;
  left.Tell(0, {.ns = 10 * kMinute}, 0);
  left.Tell(1, {.ns = 20 * kMinute}, 0);
  EXPECT_EQ(left.Text(0), ", about 30 min 00 s left in all");
  // In four minutes the first did a part of it; the second waited.
  left.Tell(0, {.ns = 5 * kMinute}, 4 * kMinute);
  EXPECT_EQ(left.Text(4 * kMinute), ", about 25 min 00 s left in all");
  left.Tell(1, {.ns = 19 * kMinute}, 6 * kMinute);
  EXPECT_EQ(left.Text(6 * kMinute), ", about 24 min 00 s left in all");
}

TEST(TimeLeftTest, APreparationOfUnknownLengthIsSaid) {
  EXPECT_EQ(EstimateText({.ns = 10 * kMinute, .plus_preparation = true}, ""),
            "about 10 min 00 s left, plus the preparation");
  TimeLeft left;
  left.Tell(0, {.ns = 10 * kMinute, .plus_preparation = true}, 0);
  EXPECT_EQ(left.Text(0), ", about 10 min 00 s left in all, plus the preparation");
  left.Tell(0, {.ns = 10 * kMinute}, kMinute);
  EXPECT_EQ(left.Text(kMinute), ", about 10 min 00 s left in all");
}

}  // namespace
}  // namespace blktape
