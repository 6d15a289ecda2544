#include "replay/prepare/steady_state.h"

#include <gtest/gtest.h>

#include <vector>

namespace blktape {
namespace {

TEST(SteadyStateTest, FourRoundsAreNeverSteady) {
  EXPECT_FALSE(JudgeSteadyState(std::vector<double>{100, 100, 100, 100}).steady);
}

TEST(SteadyStateTest, EqualRoundsAreSteady) {
  const SteadyWindow window = JudgeSteadyState(std::vector<double>{100, 100, 100, 100, 100});
  EXPECT_TRUE(window.steady);
  EXPECT_DOUBLE_EQ(window.mean, 100);
  EXPECT_DOUBLE_EQ(window.spread, 0);
  EXPECT_DOUBLE_EQ(window.slope, 0);
}

TEST(SteadyStateTest, ASpreadOfExactlyAFifthIsSteadyAndMoreIsNot) {
  // Mean 100; 110 - 90 = 20; symmetric, so the fitted line is flat.
  EXPECT_TRUE(JudgeSteadyState(std::vector<double>{90, 110, 100, 110, 90}).steady);
  const SteadyWindow window = JudgeSteadyState(std::vector<double>{89, 111, 100, 111, 89});
  EXPECT_DOUBLE_EQ(window.spread, 0.22);
  EXPECT_FALSE(window.steady);
}

TEST(SteadyStateTest, ALineThatFallsByMoreThanATenthIsNotSteady) {
  // 105 to 95 in equal steps: slope -2.5 a round, 10 over the window, mean 100: exactly a tenth.
  const SteadyWindow edge = JudgeSteadyState(std::vector<double>{105, 102.5, 100, 97.5, 95});
  EXPECT_NEAR(edge.slope, 0.10, 1e-12);
  // 106 to 94: spread 12 % is fine, the slope of 12 % is not.
  const SteadyWindow window = JudgeSteadyState(std::vector<double>{106, 103, 100, 97, 94});
  EXPECT_NEAR(window.slope, 0.12, 1e-12);
  EXPECT_NEAR(window.spread, 0.12, 1e-12);
  EXPECT_FALSE(window.steady);
}

TEST(SteadyStateTest, TheFitIsLeastSquares) {
  // x - 3: -2 -1 0 1 2; y: 10 12 11 13 14. Sum x*y = -20-12+0+13+28 = 9; / 10 = 0.9 a round; over
  // the window 3.6; mean 12: 0.3.
  EXPECT_NEAR(JudgeSteadyState(std::vector<double>{10, 12, 11, 13, 14}).slope, 0.3, 1e-12);
}

TEST(SteadyStateTest, OnlyTheLastFiveRoundsCount) {
  EXPECT_TRUE(JudgeSteadyState(std::vector<double>{900, 500, 300, 100, 101, 99, 100, 100}).steady);
}

TEST(SteadyStateTest, ADriveThatDoesNothingIsNotSteady) {
  EXPECT_FALSE(JudgeSteadyState(std::vector<double>{0, 0, 0, 0, 0}).steady);
}

}  // namespace
}  // namespace blktape
