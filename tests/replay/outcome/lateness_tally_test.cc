#include "replay/outcome/lateness_tally.h"

#include <gtest/gtest.h>

namespace blktape {
namespace {

TEST(LatenessTallyTest, HasNoQuantileOfNothing) {
  EXPECT_EQ(LatenessTally().Quantile(0.5), std::nullopt);
}

TEST(LatenessTallyTest, QuantilesAreOfTheNearestRank) {
  LatenessTally tally;
  for (int ns = 1; ns <= 10; ++ns) tally.Add(ns);
  EXPECT_EQ(tally.Quantile(0.5), 5);
  EXPECT_EQ(tally.Quantile(0.51), 6);
  EXPECT_EQ(tally.Quantile(1.0), 10);
  EXPECT_EQ(tally.Quantile(0.0), 1);
}

TEST(LatenessTallyTest, EarlyCountsAsOnTime) {
  LatenessTally tally;
  tally.Add(-5);
  EXPECT_EQ(tally.Quantile(1.0), 0);
}

TEST(LatenessTallyTest, IsNeverTooLowAndTooHighByAtMostAThirtySecond) {
  for (int shift = 0; shift < 62; ++shift) {
    const int64_t edge = int64_t{1} << shift;
    for (int64_t part = 0; part < 64; ++part) {
      for (int64_t around : {-1, 0, 1}) {
        const int64_t value = edge + (edge >> 6) * part + around;
        if (value < 0) continue;
        LatenessTally tally;
        tally.Add(value);
        const int64_t told = *tally.Quantile(1.0);
        ASSERT_GE(told, value);
        ASSERT_LE(told - value, value / 32) << value;
      }
    }
  }
}

}  // namespace
}  // namespace blktape
