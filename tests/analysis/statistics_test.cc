#include "analysis/statistics.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <random>
#include <span>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace blktape {
namespace {

TEST(StudentTTest, AgreesWithPrintedTables) {
  // Two-sided 95 % quantiles as printed in any table of Student's t.
  EXPECT_NEAR(StudentT(0.95, 1), 12.706, 5e-4);
  EXPECT_NEAR(StudentT(0.95, 2), 4.303, 5e-4);
  EXPECT_NEAR(StudentT(0.95, 4), 2.776, 5e-4);
  EXPECT_NEAR(StudentT(0.95, 9), 2.262, 5e-4);
  EXPECT_NEAR(StudentT(0.95, 14), 2.145, 5e-4);
  EXPECT_NEAR(StudentT(0.95, 30), 2.042, 5e-4);
  EXPECT_NEAR(StudentT(0.99, 5), 4.032, 5e-4);
  EXPECT_NEAR(StudentT(0.95, 1e7), 1.960, 5e-4);  // the normal distribution
}

TEST(StudentTTest, HasTheClosedFormsOfOneAndTwoDegrees) {
  // One degree: tan(pi p / 2). Two degrees: p sqrt(2 / (1 - p^2)), for the central probability p.
  for (const double p : {0.5, 0.9, 0.95, 0.99, 0.999}) {
    EXPECT_NEAR(StudentT(p, 1) / std::tan(M_PI * p / 2), 1, 1e-9);
    EXPECT_NEAR(StudentT(p, 2) / (p * std::sqrt(2 / (1 - p * p))), 1, 1e-9);
  }
}

TEST(StudentTTest, FallsSteadilyBetweenWholeDegrees) {
  double before = StudentT(0.95, 1);
  for (double degrees = 1.25; degrees < 40; degrees += 0.25) {
    const double now = StudentT(0.95, degrees);
    EXPECT_LT(now, before);
    before = now;
  }
}

TEST(MeanIntervalTest, IsMeanPlusMinusTTimesStandardError) {
  // Mean 4, s^2 = ((-2)^2 + 0 + 2^2) / 2 = 4, half width 4.302653 * 2 / sqrt(3).
  const MeanInterval interval = MeanInterval95(std::array{2.0, 4.0, 6.0});
  EXPECT_DOUBLE_EQ(interval.mean, 4);
  ASSERT_TRUE(interval.half_width.has_value());
  EXPECT_NEAR(*interval.half_width, 4.968275, 1e-5);
}

TEST(MeanIntervalTest, OneValueHasNoInterval) {
  const MeanInterval interval = MeanInterval95(std::array{7.0});
  EXPECT_DOUBLE_EQ(interval.mean, 7);
  EXPECT_FALSE(interval.half_width.has_value());
}

std::vector<double> Normal(std::mt19937_64& random, size_t count, double spread) {
  std::normal_distribution<double> normal(0, spread);
  std::vector<double> values(count);
  for (double& value : values) value = normal(random);
  return values;
}

TEST(MeanIntervalTest, HoldsTheTruthInNineteenOfTwentyCases) {
  for (const size_t cycles : {3U, 5U, 9U}) {
    std::mt19937_64 random(20 + cycles);
    int holds = 0;
    constexpr int kCases = 20'000;
    for (int i = 0; i < kCases; ++i) {
      const MeanInterval interval = MeanInterval95(Normal(random, cycles, 0.02));
      if (std::abs(interval.mean) <= *interval.half_width) ++holds;
    }
    EXPECT_NEAR(static_cast<double>(holds) / kCases, 0.95, 0.015) << cycles;
  }
}

TEST(HalfWidthTest, IsWelchsOfTwoVariances) {
  // Variances 1/3 with 2 degrees and 4 with 1: as in WelchTest.WorkedByHand.
  EXPECT_NEAR(HalfWidth95({1.0 / 3, 2}, {4, 1}),
              StudentT(0.95, 338.0 / 289.0) * std::sqrt(13.0 / 3.0), 1e-9);
  // One of no variance adds nothing, whatever its degrees.
  EXPECT_NEAR(HalfWidth95({4.0 / 3, 2}, {0, 0}), 4.968275, 1e-5);
  EXPECT_EQ(HalfWidth95({0, 1}, {0, 1}), 0);
}

TEST(SteinTest, WorkedByHand) {
  // s^2 = 4 of three values, t = 4.302653: (4.302653 * 2 / 2)^2 = 18.51, so 19 in all.
  const std::array first = {2.0, 4.0, 6.0};
  EXPECT_EQ(SteinSampleSize(first, 2, 100), 19u);
  EXPECT_EQ(SteinSampleSize(first, 2, 10), 10u);
  EXPECT_EQ(SteinSampleSize(first, 50, 100), 3u) << "never fewer than the first stage";
  // Mean of four 4, spread of the first three 2: 4.302653 * 2 / sqrt(4).
  const MeanInterval interval = SteinInterval95(std::array{2.0, 4.0, 6.0, 4.0}, 3);
  EXPECT_DOUBLE_EQ(interval.mean, 4);
  EXPECT_NEAR(*interval.half_width, 4.302653, 1e-5);
}

TEST(SteinTest, HoldsTheTruthInNineteenOfTwentyCasesAndReachesTheWidth) {
  constexpr size_t kFirst = 5;
  constexpr double kGoal = 0.015;
  for (const double spread : {0.005, 0.012, 0.03}) {
    std::mt19937_64 random(7);
    int holds = 0;
    constexpr int kCases = 20'000;
    for (int i = 0; i < kCases; ++i) {
      std::vector<double> values = Normal(random, kFirst, spread);
      const size_t total = SteinSampleSize(values, kGoal, 1'000);
      const std::vector<double> more = Normal(random, total - kFirst, spread);
      values.insert(values.end(), more.begin(), more.end());
      const MeanInterval interval = SteinInterval95(values, kFirst);
      if (std::abs(interval.mean) <= *interval.half_width) ++holds;
      if (total < 1'000) {
        EXPECT_LE(*interval.half_width, kGoal);
      }
    }
    EXPECT_NEAR(static_cast<double>(holds) / kCases, 0.95, 0.015) << spread;
  }
}

TEST(TrendTest, WorkedByHand) {
  // 1 3 2 4 over 1 2 3 4: slope (1.5 * 1.5 + 0.5 * -0.5 + 0.5 * -0.5 + 1.5 * 1.5) / 5 = 0.8, the
  // change over three steps 2.4. Residuals -0.3 0.9 -0.9 0.3: squares 1.8; error of the slope
  // sqrt(1.8 / 2 / 5) = 0.424; 0.8 / 0.424 = 1.9 < t(2) = 4.3.
  const auto unsure = FitTrend(std::array{1.0, 3.0, 2.0, 4.0});
  ASSERT_TRUE(unsure.has_value());
  EXPECT_NEAR(unsure->change, 2.4, 1e-12);
  EXPECT_FALSE(unsure->significant);
  const auto sure = FitTrend(std::array{1.0, 2.01, 2.99, 4.0});
  EXPECT_TRUE(sure->significant);
  EXPECT_FALSE(FitTrend(std::array{1.0, 2.0}).has_value());
  EXPECT_FALSE(FitTrend(std::array{2.0, 2.0, 2.0})->significant);
}

TEST(TrendTest, IsSeenInOneOfTwentySteadySeriesOnly) {
  for (const size_t cycles : {3U, 5U, 10U}) {
    std::mt19937_64 random(3);
    int seen = 0;
    constexpr int kCases = 20'000;
    for (int i = 0; i < kCases; ++i) seen += FitTrend(Normal(random, cycles, 1))->significant;
    EXPECT_NEAR(static_cast<double>(seen) / kCases, 0.05, 0.01) << cycles;
  }
}

TEST(WelchTest, WorkedByHand) {
  // a = 1 2 3: mean 2, s^2/n = 1/3. b = 5 9: mean 7, s^2/n = 8/2 = 4. Difference -5, variance 13/3.
  // Degrees (13/3)^2 / ((1/9)/2 + 16/1) = (169/9) / (289/18) = 338/289 = 1.169550.
  const auto interval = WelchInterval95(std::array{1.0, 2.0, 3.0}, std::array{5.0, 9.0});
  ASSERT_TRUE(interval.has_value());
  EXPECT_DOUBLE_EQ(interval->difference, -5);
  const double half_width = StudentT(0.95, 338.0 / 289.0) * std::sqrt(13.0 / 3.0);
  EXPECT_NEAR(interval->low, -5 - half_width, 1e-9);
  EXPECT_NEAR(interval->high, -5 + half_width, 1e-9);
}

TEST(WelchTest, EqualVariancesAndSizesGiveTheOrdinaryDegrees) {
  // Both s^2 = 1, n = 3: variance 2/3, degrees 4, t = 2.776445.
  const auto interval = WelchInterval95(std::array{1.0, 2.0, 3.0}, std::array{11.0, 12.0, 13.0});
  ASSERT_TRUE(interval.has_value());
  EXPECT_NEAR(interval->high - interval->difference, 2.776445 * std::sqrt(2.0 / 3.0), 1e-5);
}

TEST(WelchTest, NeedsTwoValuesOfEach) {
  EXPECT_FALSE(WelchInterval95(std::array{1.0}, std::array{1.0, 2.0}).has_value());
  EXPECT_FALSE(WelchInterval95(std::array{1.0, 2.0}, std::array{1.0}).has_value());
}

TEST(WelchTest, WithoutAnySpreadTheIntervalIsThePoint) {
  const auto interval = WelchInterval95(std::array{1.0, 1.0}, std::array{3.0, 3.0});
  ASSERT_TRUE(interval.has_value());
  EXPECT_EQ(interval->low, -2);
  EXPECT_EQ(interval->high, -2);
}

}  // namespace
}  // namespace blktape
