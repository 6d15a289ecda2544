#include "analysis/score.h"

#include <array>
#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace blktape {
namespace {

using Segments = std::vector<SegmentCosts>;

TEST(ScoreTest, TheReferenceScoresAThousand) {
  const Segments reference = {{100, 500, 900}, {7, 8, 9}};
  const Score score = ComputeScore(reference, {reference});
  EXPECT_DOUBLE_EQ(score.score, 1000);
  EXPECT_FALSE(score.rank_changes);
}

TEST(ScoreTest, HalfTheCostScoresTwoThousand) {
  const Segments reference = {{100, 500, 900}, {7, 8, 9}};
  const Segments drive = {{50, 250, 450}, {3.5, 4, 4.5}};
  EXPECT_NEAR(ComputeScore(reference, {drive}).score, 2000, 1e-9);
}

TEST(ScoreTest, EachCostWeighsAsTheVersionSays) {
  const Segments reference = {{100, 100, 100}};
  EXPECT_NEAR(LogScore(reference, Segments{{50, 100, 100}}), 0.40 * std::log(2), 1e-12);
  EXPECT_NEAR(LogScore(reference, Segments{{100, 50, 100}}), 0.30 * std::log(2), 1e-12);
  EXPECT_NEAR(LogScore(reference, Segments{{100, 100, 50}}), 0.30 * std::log(2), 1e-12);
}

TEST(ScoreTest, SegmentsCountAlike) {
  // Twice as fast in one of four segments: 1000 * 2^(1/4).
  const Segments reference = {{1, 1, 1}, {10, 10, 10}, {100, 100, 100}, {1000, 1000, 1000}};
  Segments drive = reference;
  for (double& cost : drive[2]) cost /= 2;
  EXPECT_NEAR(ComputeScore(reference, {drive}).score, 1000 * std::pow(2, 0.25), 1e-9);
}

TEST(ScoreTest, TheRatioOfTwoDrivesDoesNotDependOnTheReference) {
  const Segments a = {{10, 90, 30}, {5, 60, 80}};
  const Segments b = {{12, 70, 35}, {6, 66, 60}};
  const Segments one = {{1, 1, 1}, {1, 1, 1}};
  const Segments other = {{900, 3, 70}, {0.5, 44, 2}};
  EXPECT_NEAR(ComputeScore(one, {a}).score / ComputeScore(one, {b}).score,
              ComputeScore(other, {a}).score / ComputeScore(other, {b}).score, 1e-12);
}

// Three cycles that score 1000 e^-spread, 1000 and 1000 e^spread.
Score ScoreWithSpread(double spread) {
  Cycles cycles;
  for (const double log : {-spread, 0.0, spread}) {
    const double cost = std::exp(-log);
    cycles.push_back({{cost, cost, cost}});
  }
  return ComputeScore(Segments{{1, 1, 1}}, cycles);
}

TEST(ScoreTest, TheIntervalIsOfTheLogarithmsByStudentsT) {
  // ln(S/1000) of the cycles: -0.1, 0, +0.1. Mean 0, s = 0.1, half width 4.302653 * 0.1 / sqrt(3).
  const Score score = ScoreWithSpread(0.1);
  EXPECT_NEAR(score.score, 1000, 1e-9);
  ASSERT_TRUE(score.half_width_ln.has_value());
  EXPECT_NEAR(*score.half_width_ln, 0.248414, 1e-6);
  EXPECT_NEAR(*score.ci_low, 1000 * std::exp(-0.248414), 1e-3);
  EXPECT_NEAR(*score.ci_high, 1000 * std::exp(0.248414), 1e-3);
}

TEST(ScoreTest, OneCycleHasNoInterval) {
  const Segments reference = {{1, 1, 1}};
  const Score score = ComputeScore(reference, {reference});
  EXPECT_FALSE(score.ci_low.has_value());
  EXPECT_FALSE(score.interval_ratio().has_value());
  EXPECT_FALSE(score.interval_too_wide().has_value());
}

TEST(ScoreTest, AnIntervalThatHidesADoubledCostIsTooWide) {
  // The ends lie e^(2 * 4.302653 * spread / sqrt(3)) apart; 2^0.30 = 1.23114.
  EXPECT_NEAR(*ScoreWithSpread(0.0415).interval_ratio(), 1.22898, 1e-5);
  EXPECT_FALSE(*ScoreWithSpread(0.0415).interval_too_wide());
  EXPECT_NEAR(*ScoreWithSpread(0.0422).interval_ratio(), 1.23326, 1e-5);
  EXPECT_TRUE(*ScoreWithSpread(0.0422).interval_too_wide());
}

TEST(ScoreTest, TheWidestIntervalIsAsWideAsTheEffectOfADoubledTail) {
  const Segments reference = {{100, 100, 100}};
  const double halved = ComputeScore(reference, {{{100, 200, 100}}}).score;
  EXPECT_NEAR(1000 / halved, WidestIntervalRatio(), 1e-12);
}

TEST(ScoreTest, EachWeightIsVariedByHalfAndRenormalised) {
  // Only the response differs, by a factor e^-1: ln S is the weight of the response.
  const Segments reference = {{1, 1, 1}};
  const Segments drive = {{std::exp(-1.0), 1, 1}};
  const Score score = ComputeScore(reference, {drive});
  ASSERT_EQ(score.variants.size(), 6u);
  // Response halved: 0.2 / (0.2 + 0.3 + 0.3); at one and a half: 0.6 / 1.2.
  EXPECT_NEAR(std::log(score.variants[0].score / 1000), 0.25, 1e-12);
  EXPECT_NEAR(std::log(score.variants[1].score / 1000), 0.5, 1e-12);
  // Tail halved: 0.4 / 0.85; at one and a half: 0.4 / 1.15.
  EXPECT_NEAR(std::log(score.variants[2].score / 1000), 0.4 / 0.85, 1e-12);
  EXPECT_NEAR(std::log(score.variants[3].score / 1000), 0.4 / 1.15, 1e-12);
  EXPECT_FALSE(score.rank_changes);
}

TEST(ScoreTest, SaysWhenTheWeightsDecideTheRank) {
  // Response 10 % better, tail 12 % worse: 0.4 * 0.1 - 0.3 * 0.12 > 0, but with the response at
  // half its weight 0.2 * 0.1 - 0.3 * 0.12 < 0.
  const Segments reference = {{1, 1, 1}};
  const Score score = ComputeScore(reference, {{{std::exp(-0.10), std::exp(0.12), 1}}});
  EXPECT_GT(score.score, 1000);
  EXPECT_TRUE(score.rank_changes);
}

TEST(ScoreTest, AMeasuredReferenceIsTheGeometricMeanOfItsCycles) {
  const Segments reference = ReferenceOf({{{1, 10, 100}}, {{4, 1000, 100}}});
  EXPECT_NEAR(reference[0][0], 2, 1e-12);
  EXPECT_NEAR(reference[0][1], 100, 1e-9);
  EXPECT_NEAR(reference[0][2], 100, 1e-9);
}

TEST(CompareTest, FasterNeedsBothAnIntervalWithoutZeroAndTwoPercent) {
  const std::array slow = {0.000, 0.001, 0.002};
  const std::array little = {0.010, 0.011, 0.012};  // 1 % better, and certain
  const std::array clear = {0.100, 0.101, 0.102};
  const std::array wild = {-0.3, 0.1, 0.5};  // 10 % better in the mean, and not certain
  EXPECT_EQ(CompareScores(little, slow).verdict, Verdict::kTie);
  EXPECT_EQ(CompareScores(wild, slow).verdict, Verdict::kTie);
  EXPECT_EQ(CompareScores(clear, slow).verdict, Verdict::kFirstFaster);
  EXPECT_EQ(CompareScores(slow, clear).verdict, Verdict::kSecondFaster);
  EXPECT_NEAR(CompareScores(clear, slow).ratio, std::exp(0.1), 1e-9);
}

TEST(CompareTest, OneCycleDecidesNothing) {
  EXPECT_EQ(CompareScores(std::array{1.0}, std::array{0.0, 0.0}).verdict, Verdict::kTooFewCycles);
}

TEST(WaitTest, ScalesToAWorkdayOfEightHours) {
  // 36 s of waiting in an hour of recording.
  EXPECT_DOUBLE_EQ(WaitSecondsPerWorkday(36e9, 3600 * kNanosPerSecond), 288);
}

}  // namespace
}  // namespace blktape
