#include "analysis/step_series.h"

#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace blktape {
namespace {

using ::testing::ElementsAre;

TEST(NiceStepTest, IsTheShortestRoundStepThatSuits) {
  EXPECT_EQ(NiceStepNs(0, 100), 1'000);
  // 1.7 s in fewer than 100 steps: 17 ms would do, the next round length is 20 ms.
  EXPECT_EQ(NiceStepNs(1'700'000'000, 100), 20'000'000);
  // 8 h = 28,800 s in fewer than 2,000 steps: 14.4 s, so 15 s.
  EXPECT_EQ(NiceStepNs(28'800'000'000'000, 2'000), 15'000'000'000);
  // A length of exactly 100 steps of 1 ms has its end in the 101st.
  EXPECT_EQ(NiceStepNs(100'000'000, 100), 2'000'000);
  EXPECT_EQ(NiceStepNs(int64_t{400} * 86'400'000'000'000, 100), int64_t{8} * 86'400'000'000'000);
}

TEST(StepSeriesTest, CountsInTheStepThatHoldsTheTime) {
  StepSeries<int> series(4, 10);
  ++series.At(0);
  ++series.At(9);
  ++series.At(10);
  ++series.At(39);
  ++series.At(-5);  // before the beginning: in the first
  EXPECT_EQ(series.step_ns(), 10);
  EXPECT_THAT(series.steps(), ElementsAre(3, 1, 0, 1));
}

TEST(StepSeriesTest, ATimeBeyondTheLastStepDoublesAll) {
  StepSeries<int> series(4, 10);
  for (const int64_t ns : {0, 10, 20, 30}) series.At(ns) += static_cast<int>(ns) + 1;
  ++series.At(40);  // 4 steps of 10 end at 40
  EXPECT_EQ(series.step_ns(), 20);
  EXPECT_THAT(series.steps(), ElementsAre(1 + 11, 21 + 31, 1));
  ++series.At(1'000'000);
  EXPECT_EQ(series.step_ns(), 327'680);  // 20 * 2^14: 4 of them reach beyond 1,000,000
  EXPECT_THAT(series.steps(), ElementsAre(65, 0, 0, 1));
}

TEST(SpanSeriesTest, AnIntervalIsDividedAmongTheStepsItCovers) {
  SpanSeries series(10, 10);
  series.Add(5, 32);   // 5 of the first step, two whole ones, 2 of the fourth
  series.Add(12, 14);  // overlaps: counts again
  series.Add(-7, 3);   // what lies before 0 is left out
  series.Add(20, 20);  // nothing
  EXPECT_THAT(series.CoveredNs(), ElementsAre(8, 12, 10, 2));
}

TEST(SpanSeriesTest, DoublingKeepsWhatWasCovered) {
  SpanSeries series(4, 10);
  series.Add(5, 32);
  series.Add(30, 75);  // beyond 40: steps of 20
  EXPECT_EQ(series.step_ns(), 20);
  EXPECT_THAT(series.CoveredNs(), ElementsAre(15, 12 + 10, 20, 15));
  series.FoldTo(40);
  EXPECT_THAT(series.CoveredNs(), ElementsAre(37, 35));
}

}  // namespace
}  // namespace blktape
