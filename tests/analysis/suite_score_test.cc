#include "analysis/suite_score.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "analysis/drive_comparison.h"
#include "analysis/score.h"
#include "base/json.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/analysis/score_json.h"

namespace blktape {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;
// A trace of one segment, of which the cycles' costs are these; the reference's are 1 s.
Json Report(const std::string& model, char trace, const std::vector<double>& costs_ns) {
  Json report = ScoreReportJson(model, {costs_ns});
  report["trace"] = std::string(1, trace) + ".tape";
  report["trace_hash"] = std::string(64, trace);
  report["log_scores"] = Json::array();
  for (const double ns : costs_ns) report["log_scores"].push_back(std::log(1e9 / ns));
  return report;
}

Json SuiteJson(const std::vector<std::pair<double, Json>>& traces) {
  Json json = {{"suite_version", 1}, {"suite", "office"}, {"traces", Json::array()}};
  for (const auto& [weight, report] : traces) {
    json["traces"].push_back({{"weight", weight}, {"report", report}});
  }
  return json;
}

SuiteScore Suite(const std::vector<std::pair<double, Json>>& traces) {
  Result<SuiteScore> suite = ParseSuiteScore(JsonText(SuiteJson(traces)));
  EXPECT_TRUE(suite.ok()) << suite.status().message();
  return *std::move(suite);
}

// Three cycles around `ns` whose logarithms have the standard deviation `sd`.
std::vector<double> Spread(double ns, double sd) {
  return {ns * std::exp(sd), ns, ns * std::exp(-sd)};
}

TEST(SuiteScoreTest, TheCompositeIsTheWeightedGeometricMean) {
  // 2000 with weight 3, 500 with weight 1: 1000 * 2^(3/4) * 2^(-1/4).
  const SuiteScore suite =
      Suite({{3, Report("d", 'a', {0.5e9, 0.5e9})}, {1, Report("d", 'b', {2e9, 2e9})}});
  ASSERT_TRUE(suite.composite());
  EXPECT_NEAR(suite.composite()->score, 1000 * std::sqrt(2.0), 1e-9);
  EXPECT_NEAR(*suite.composite()->ci_low, 1000 * std::sqrt(2.0), 1e-9) << "no spread, no width";
  EXPECT_DOUBLE_EQ(suite.share(0), 0.75);
}

TEST(SuiteScoreTest, TheIntervalIsByTheVariancesOfTheTraces) {
  // Shares 0.75 and 0.25; variances of the means 0.01^2 / 3 and 0.02^2 / 3, two degrees each.
  // V = 0.5625 * 3.33333e-5 + 0.0625 * 1.33333e-4 = 1.875e-5 + 8.33333e-6 = 2.708333e-5.
  // d = V^2 / (1.875e-5^2 / 2 + 8.33333e-6^2 / 2) = 7.335069e-10 / 2.105035e-10 = 3.484536.
  // t(0.975, 3.484536) = 2.946173 (by integrating the density); times the root of V, 0.005204165,
  // is 0.0153324.
  const SuiteScore suite =
      Suite({{3, Report("d", 'a', Spread(1e9, 0.01))}, {1, Report("d", 'b', Spread(1e9, 0.02))}});
  ASSERT_TRUE(suite.composite() && suite.composite()->ci_low);
  EXPECT_NEAR(std::log(*suite.composite()->ci_high / 1000), 0.0153324, 1e-6);
  EXPECT_NEAR(std::log(*suite.composite()->ci_low / 1000), -0.0153324, 1e-6);
}

TEST(SuiteScoreTest, OneTraceIsItsScore) {
  const SuiteScore suite = Suite({{7, Report("d", 'a', Spread(1e9, 0.01))}});
  // t(0.975, 2) = 4.302653; times 0.01 / sqrt 3.
  EXPECT_NEAR(std::log(*suite.composite()->ci_high / 1000), 4.302653 * 0.01 / std::sqrt(3.0), 1e-7);
}

TEST(SuiteScoreTest, ADrawIsAPartOfItsOwn) {
  Json sampled = Report("d", 'a', {1e9, 1e9});
  // Two windows of each of two strata; of the second there are no more, so chance has the first.
  sampled["sampling_sd_ln"] = 0.01;
  sampled["sample"] = {
      {"strata", {{{"segment", 0}, {"windows", 9}}, {{"segment", 0}, {"windows", 2}}}},
      {"stratum_of_window", {0, 0, 1, 1}}};
  const SuiteScore suite = Suite({{1, sampled}});
  // t(0.975, 1) = 12.706205.
  EXPECT_NEAR(std::log(*suite.composite()->ci_high / 1000), 12.706205 * 0.01, 1e-7);
  sampled["sample"]["stratum_of_window"] = {0, 2};
  EXPECT_FALSE(ParseSuiteScore(JsonText(SuiteJson({{1, sampled}}))).ok()) << "no such stratum";
}

TEST(SuiteScoreTest, OneCycleHasNoIntervalAndNoScoreNoComposite) {
  EXPECT_FALSE(Suite({{1, Report("d", 'a', {1e9})}}).composite()->ci_low);
  Json none = Report("d", 'a', {1e9, 1e9});
  none["valid"] = false;
  none["cycles"] = 0;
  none["segments"] = Json::array();
  none["log_scores"] = Json::array();
  for (const char* key : {"score", "ci_low", "ci_high", "storage_wait_ns"}) none[key] = nullptr;
  const SuiteScore suite = Suite({{1, none}, {1, Report("d", 'b', {1e9, 1e9})}});
  EXPECT_FALSE(suite.composite());
  EXPECT_FALSE(suite.valid());
}

TEST(SuiteScoreTest, WhatIsNoSuiteIsRefused) {
  const Json good = SuiteJson({{1, Report("d", 'a', {1e9, 1e9})}});
  const auto code = [](const Json& json) {
    return ParseSuiteScore(JsonText(json)).status().code();
  };
  EXPECT_EQ(code(good), StatusCode::kOk);
  for (const char* key : {"suite_version", "suite", "traces"}) {
    Json bad = good;
    bad.erase(key);
    EXPECT_EQ(code(bad), StatusCode::kDataLoss) << key;
  }
  Json bad = good;
  bad["traces"] = Json::array();
  EXPECT_EQ(code(bad), StatusCode::kDataLoss);
  bad = good;
  bad["traces"][0]["weight"] = 0;
  EXPECT_EQ(code(bad), StatusCode::kDataLoss);
  bad = good;
  bad["suite_version"] = 2;
  EXPECT_EQ(code(bad), StatusCode::kUnimplemented);
}

SuiteComparison Compare(SuiteScore a, SuiteScore b) {
  return CompareSuites({{"A", "a file", std::move(a)}, {"B", "b file", std::move(b)}});
}

TEST(SuiteComparisonTest, TheRatioIsOfBothTracesWithTheIntervalOfAllFourSpreads) {
  // On the first trace B is 4 times as fast, on the second A twice: 4^(3/4) * 2^(-1/4).
  const SuiteComparison all = Compare(
      Suite({{3, Report("a", 'a', Spread(4e9, 0.01))}, {1, Report("a", 'b', Spread(1e9, 0.01))}}),
      Suite({{6, Report("b", 'a', Spread(1e9, 0.01))}, {2, Report("b", 'b', Spread(2e9, 0.01))}}));
  ASSERT_EQ(all.pairs.size(), 1u);
  const SuitePair& pair = all.pairs[0];
  EXPECT_EQ(pair.first, 1u);
  EXPECT_EQ(pair.comparison.verdict, Verdict::kFirstFaster);
  EXPECT_NEAR(pair.comparison.ratio, std::exp2(1.25), 1e-9);
  // V = 2 (0.5625 + 0.0625) 0.01^2 / 3 = 4.1666667e-5; d = V^2 / sum of (share^2 3.3333e-5)^2 / 2
  // = 1.7361111e-9 / (0.31640625 + 0.00390625) 1.1111111e-9 = 4.878049; t(0.975, 4.878049) =
  // 2.590032; half width 0.0167186.
  EXPECT_NEAR(std::log(pair.comparison.ratio_high / pair.comparison.ratio), 0.0167186, 1e-6);
  EXPECT_THAT(all.places, ElementsAre(Optional(2u), Optional(1u)));
  ASSERT_EQ(all.traces.size(), 2u);
  EXPECT_EQ(all.traces[1].drives[all.traces[1].pairs[0].first].label, "A");
}

TEST(SuiteComparisonTest, OtherTracesWeightsOrOneInvalidTraceAreNoVerdict) {
  const auto suite = [](double weight, char second) {
    return Suite({{weight, Report("d", 'a', {1e9, 1e9})}, {1, Report("d", second, {1e9, 1e9})}});
  };
  EXPECT_EQ(Compare(suite(1, 'b'), suite(1, 'b')).pairs[0].comparison.verdict, Verdict::kTie);
  EXPECT_EQ(Compare(suite(1, 'b'), suite(2, 'b')).pairs[0].obstacle, Obstacle::kOtherTrace);
  EXPECT_EQ(Compare(suite(1, 'b'), suite(1, 'c')).pairs[0].obstacle, Obstacle::kOtherTrace);
  SuiteScore invalid = suite(1, 'b');
  invalid.traces[1].score.valid = false;
  const SuiteComparison all = Compare(suite(1, 'b'), std::move(invalid));
  EXPECT_EQ(all.pairs[0].obstacle, Obstacle::kInvalid);
  EXPECT_THAT(all.pairs[0].trace, Optional(1u));
  EXPECT_FALSE(all.whole());
  EXPECT_FALSE(all.places[0]);
}

}  // namespace
}  // namespace blktape
