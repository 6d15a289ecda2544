#include "analysis/score.h"

#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace blktape {
namespace {

using Segments = std::vector<SegmentCosts>;

TEST(ScoreTest, TheReferenceScoresAThousand) {
  const Segments reference = {{500, 900}, {8, 9}};
  const Score score = ComputeScore(reference, {reference});
  EXPECT_DOUBLE_EQ(score.score, 1000);
  EXPECT_FALSE(score.rank_changes);
}

TEST(ScoreTest, HalfTheCostScoresTwoThousand) {
  const Segments reference = {{500, 900}, {8, 9}};
  const Segments drive = {{250, 450}, {4, 4.5}};
  EXPECT_NEAR(ComputeScore(reference, {drive}).score, 2000, 1e-9);
}

TEST(ScoreTest, EachCostWeighsAsTheVersionSays) {
  const Segments reference = {{100, 100}};
  EXPECT_NEAR(LogScore(reference, Segments{{50, 100}}), 0.70 * std::log(2), 1e-12);
  EXPECT_NEAR(LogScore(reference, Segments{{100, 50}}), 0.30 * std::log(2), 1e-12);
}

TEST(ScoreTest, SegmentsCountAlike) {
  // Twice as fast in one of four segments: 1000 * 2^(1/4).
  const Segments reference = {{1, 1}, {10, 10}, {100, 100}, {1000, 1000}};
  Segments drive = reference;
  for (double& cost : drive[2]) cost /= 2;
  EXPECT_NEAR(ComputeScore(reference, {drive}).score, 1000 * std::pow(2, 0.25), 1e-9);
}

TEST(ScoreTest, TheRatioOfTwoDrivesDoesNotDependOnTheReference) {
  const Segments a = {{10, 30}, {60, 80}};
  const Segments b = {{12, 35}, {66, 60}};
  const Segments one = {{1, 1}, {1, 1}};
  const Segments other = {{900, 70}, {0.5, 2}};
  EXPECT_NEAR(ComputeScore(one, {a}).score / ComputeScore(one, {b}).score,
              ComputeScore(other, {a}).score / ComputeScore(other, {b}).score, 1e-12);
}

// Three cycles that score 1000 e^-spread, 1000 and 1000 e^spread.
Score ScoreWithSpread(double spread) {
  Cycles cycles;
  for (const double log : {-spread, 0.0, spread}) {
    const double cost = std::exp(-log);
    cycles.push_back({{cost, cost}});
  }
  return ComputeScore(Segments{{1, 1}}, cycles);
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
  const Segments reference = {{1, 1}};
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

TEST(ScoreTest, TheWidestIntervalIsAsWideAsTheEffectOfADoubledWork) {
  const Segments reference = {{100, 100}};
  const double halved = ComputeScore(reference, {{{100, 200}}}).score;
  EXPECT_NEAR(1000 / halved, WidestIntervalRatio(), 1e-12);
}

TEST(ScoreTest, EachWeightIsVariedByHalfAndRenormalised) {
  // Only the wait differs, by a factor e^-1: ln S is the weight of the wait.
  const Segments reference = {{1, 1}};
  const Segments drive = {{std::exp(-1.0), 1}};
  const Score score = ComputeScore(reference, {drive});
  ASSERT_EQ(score.variants.size(), 4u);
  // Wait halved: 0.35 / (0.35 + 0.3); at one and a half: 1.05 / 1.35.
  EXPECT_NEAR(std::log(score.variants[0].score / 1000), 0.35 / 0.65, 1e-12);
  EXPECT_NEAR(std::log(score.variants[1].score / 1000), 1.05 / 1.35, 1e-12);
  // Work halved: 0.7 / 0.85; at one and a half: 0.7 / 1.15.
  EXPECT_NEAR(std::log(score.variants[2].score / 1000), 0.7 / 0.85, 1e-12);
  EXPECT_NEAR(std::log(score.variants[3].score / 1000), 0.7 / 1.15, 1e-12);
  EXPECT_FALSE(score.rank_changes);
}

TEST(ScoreTest, SaysWhenTheWeightsDecideTheRank) {
  // Wait 10 % better, work 20 % worse: 0.7 * 0.1 - 0.3 * 0.2 > 0, but with the wait at half its
  // weight 0.35 * 0.1 - 0.3 * 0.2 < 0.
  const Segments reference = {{1, 1}};
  const Score score = ComputeScore(reference, {{{std::exp(-0.10), std::exp(0.20)}}});
  EXPECT_GT(score.score, 1000);
  EXPECT_TRUE(score.rank_changes);
}

// Cycles of these ln(S / 1000).
Cycles CyclesOf(const std::vector<double>& logs) {
  Cycles cycles;
  for (const double log : logs) cycles.push_back({{std::exp(-log), std::exp(-log)}});
  return cycles;
}

TEST(ScoreTest, APublishedScoreTakesTheSpreadOfItsFirstStage) {
  // -0.1, 0, 0.1, then one more of 0: mean 0, s of the first three 0.1, half width 4.302653 * 0.1 /
  // sqrt(4).
  const Score score = ComputeScore(Segments{{1, 1}}, CyclesOf({-0.1, 0, 0.1, 0}), 3);
  EXPECT_NEAR(*score.half_width_ln, 0.2151326, 1e-6);
}

TEST(ScoreTest, ADriveThatIsNotSteadyIsToldByTheTrendOfItsCycles) {
  const auto trend = [](const std::vector<double>& logs) {
    return ComputeScore(Segments{{1, 1}}, CyclesOf(logs)).trend_ln;
  };
  // Slope -0.0298 (t = 297 of the residuals 0, -1e-4 ...): from first to last -0.0894.
  const auto falls = trend({0, -0.030, -0.0598, -0.0894});
  ASSERT_TRUE(falls.has_value());
  EXPECT_NEAR(*falls, -0.0894, 5e-4);
  EXPECT_FALSE(trend({0, 0.1, -0.05, 0.07}).has_value()) << "no trend, only spread";
  EXPECT_FALSE(trend({0, -0.0030, -0.0060, -0.0090}).has_value()) << "sure, but less than 2 %";
  EXPECT_FALSE(trend({0, -0.1}).has_value()) << "two cycles";
}

TEST(ScoreTest, AMeasuredReferenceIsTheGeometricMeanOfItsCycles) {
  const Segments reference = ReferenceOf({{{1, 10}}, {{4, 1000}}});
  EXPECT_NEAR(reference[0][0], 2, 1e-12);
  EXPECT_NEAR(reference[0][1], 100, 1e-9);
}

TEST(SampleTest, TotalsAreWeightedByStratumAndTheJackknifeTellsTheirError) {
  // One segment. Stratum 0 holds four windows, of which two were drawn; stratum 1 two, both drawn.
  const SampleDesign design{.segments = 1, .strata = {{0, 4}, {0, 2}}, .stratum_of = {0, 0, 1, 1}};
  // The work is alike on both drives; the wait is 10 and 10, 5 and 5 on the reference.
  const Segments reference = {{10, 1}, {10, 1}, {5, 1}, {5, 1}};
  const Segments drive = {{18, 1}, {22, 1}, {10, 1}, {10, 1}};
  // 2 * (18 + 22) + 20 = 100 against 2 * 20 + 10 = 50.
  EXPECT_DOUBLE_EQ(EstimateTotal(design, drive, Cost::kWait), 100);
  const CostWeights wait_only = {1, 0};
  const SampledLogScore log = EstimateLogScore(design, reference, drive, wait_only);
  // Left out in turn: 4 * 22 + 20 = 108 and 4 * 18 + 20 = 92. Stratum 1 leaves nothing to chance.
  const double first = std::log(50.0 / 108);
  const double second = std::log(50.0 / 92);
  const double mean = (first + second) / 2;
  const double variance = 0.5 * 0.5 * ((first - mean) * (first - mean) * 2);
  EXPECT_NEAR(log.sampling.variance, variance, 1e-12);
  EXPECT_NEAR(log.log_score, std::log(0.5) - 0.5 * (mean - std::log(0.5)), 1e-12);
  EXPECT_EQ(log.sampling.degrees, 1);
}

TEST(SampleTest, AWholeSampleIsTheScoreItself) {
  const SampleDesign design{.segments = 2, .strata = {{0, 2}, {1, 1}}, .stratum_of = {0, 0, 1}};
  const Segments reference = {{1, 2}, {3, 4}, {7, 7}};
  const Segments drive = {{2, 1}, {1, 5}, {9, 6}};
  const SampledLogScore log = EstimateLogScore(design, reference, drive, kWeights);
  EXPECT_NEAR(log.log_score, LogScore(Segments{{4, 6}, {7, 7}}, Segments{{3, 6}, {9, 6}}), 1e-12);
  EXPECT_EQ(log.sampling.variance, 0);
  // With cycles alike there is nothing else either.
  const Score score = ComputeScore(reference, {drive}, 0, &design);
  EXPECT_EQ(*score.half_width_ln, 0);
}

TEST(SampleTest, WhatPutsTheScoreFurtherOffTheDrawOrTheRuns) {
  Score score;
  // The mean of these two has a standard error of 0.1 / 2.
  score.log_scores = {0.3, 0.4};
  EXPECT_FALSE(score.mostly_of_the_draw()) << "no sample";
  score.sampling_sd_ln = 0.049;
  EXPECT_FALSE(score.mostly_of_the_draw());
  score.sampling_sd_ln = 0.051;
  EXPECT_TRUE(score.mostly_of_the_draw());
  score.log_scores = {0.3};
  score.sampling_sd_ln = 0.001;
  EXPECT_TRUE(score.mostly_of_the_draw()) << "of one cycle nothing else is known";
}

TEST(CompareTest, DrivesThatAreAlikeTieInNineteenOfTwentyCampaigns) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> noise(0, 0.03);
  const auto campaign = [&] {
    std::vector<double> logs(3);
    for (double& log : logs) log = noise(random);
    return logs;
  };
  int ties = 0;
  constexpr int kCampaigns = 2'000;
  for (int i = 0; i < kCampaigns; ++i) {
    const std::vector<double> first = campaign();
    ties += CompareScores(first, campaign()).verdict == Verdict::kTie;
  }
  EXPECT_GE(ties, kCampaigns * 19 / 20);
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
