#include "analysis/drive_comparison.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/measured_score.h"
#include "analysis/score.h"
#include "base/json.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/analysis/score_json.h"

namespace blktape {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
ComparedDrive Drive(const Json& json) {
  Result<MeasuredScore> score = ParseMeasuredScore(JsonText(json));
  EXPECT_TRUE(score.ok()) << score.status().message();
  std::string label = score->name();
  return {std::move(label), "a file", *std::move(score)};
}

Json OneSegment(const std::string& model, const std::vector<double>& costs_ns) {
  return ScoreReportJson(model, {costs_ns});
}

// Costs around `ns` whose logarithms have the standard deviation 0.01 over three cycles.
std::vector<double> Spread(double ns) { return {ns * std::exp(0.01), ns, ns * std::exp(-0.01)}; }

TEST(DriveComparisonTest, TwiceTheCostIsHalfAsFastWithTheIntervalOfWelch) {
  const DriveComparison all = CompareDrives(
      {Drive(OneSegment("slow", Spread(2e9))), Drive(OneSegment("fast", Spread(1e9)))});
  ASSERT_EQ(all.pairs.size(), 1u);
  const DrivePair& pair = all.pairs[0];
  EXPECT_EQ(pair.obstacle, Obstacle::kNone);
  EXPECT_EQ(all.drives[pair.first].label, "fast");
  EXPECT_EQ(pair.comparison.verdict, Verdict::kFirstFaster);
  // Variance of each mean 0.01^2 / 3; of the difference twice that, with 4 degrees of freedom; its
  // root times t(0.975, 4) = 2.776445 is 0.0226696.
  EXPECT_NEAR(pair.comparison.ratio, 2, 1e-9);
  EXPECT_NEAR(pair.comparison.ratio_low, 2 * std::exp(-0.0226696), 1e-6);
  EXPECT_NEAR(pair.comparison.ratio_high, 2 * std::exp(0.0226696), 1e-6);
  EXPECT_THAT(all.places, ElementsAre(Optional(2u), Optional(1u)));
  EXPECT_TRUE(all.whole());
}

TEST(DriveComparisonTest, LessThanTwoPercentIsATieHoweverSure) {
  const DriveComparison all =
      CompareDrives({Drive(OneSegment("a", {1e9, 1e9})), Drive(OneSegment("b", {1.019e9, 1.019e9})),
                     Drive(OneSegment("c", {1.021e9, 1.021e9}))});
  ASSERT_EQ(all.pairs.size(), 3u);
  for (const DrivePair& pair : all.pairs) {
    const bool a_and_c =
        all.drives[pair.first].label == "a" && all.drives[pair.second].label == "c";
    EXPECT_EQ(pair.comparison.verdict, a_and_c ? Verdict::kFirstFaster : Verdict::kTie);
  }
  // b ties with both.
  EXPECT_THAT(all.places, ElementsAre(Optional(1u), Optional(1u), Optional(2u)));
}

TEST(DriveComparisonTest, AnIntervalThatHoldsOneIsATie) {
  // 3 % apart, but half width 0.0226696 * 3 of the logarithm.
  const auto wide = [](double ns) {
    return std::vector<double>{ns * std::exp(0.03), ns, ns * std::exp(-0.03)};
  };
  const DriveComparison all =
      CompareDrives({Drive(OneSegment("a", wide(1e9))), Drive(OneSegment("b", wide(1.03e9)))});
  EXPECT_EQ(all.pairs[0].comparison.verdict, Verdict::kTie);
  EXPECT_LT(all.pairs[0].comparison.ratio_low, 1);
  EXPECT_GT(all.pairs[0].comparison.ratio_high, 1.03);
}

Obstacle ObstacleAfter(const char* key, const Json& value) {
  Json other = OneSegment("b", {2e9, 2e9});
  other[key] = value;
  const DriveComparison all = CompareDrives({Drive(OneSegment("a", {1e9, 1e9})), Drive(other)});
  EXPECT_EQ(all.whole(), all.pairs[0].obstacle == Obstacle::kNone);
  EXPECT_EQ(all.places[0].has_value(), all.whole());
  return all.pairs[0].obstacle;
}

TEST(DriveComparisonTest, AVerdictTakesOneTraceAndOneRule) {
  EXPECT_EQ(ObstacleAfter("trace_hash", std::string(64, 'b')), Obstacle::kOtherTrace);
  EXPECT_EQ(ObstacleAfter("piece", "sda"), Obstacle::kOtherTrace);
  EXPECT_EQ(ObstacleAfter("rule", "score 2: open loop, as-is; 512110190592 bytes, write back"),
            Obstacle::kOtherRule);
  // What the drive is may differ.
  EXPECT_EQ(ObstacleAfter("rule", "score 2: closed loop, idle cap 1 s, as-is; 7 bytes"),
            Obstacle::kNone);
}

TEST(DriveComparisonTest, ASimulatedDriveHasNoPauseEngineOrDevice) {
  const auto obstacle = [](const std::string& real, const std::string& simulated) {
    Json a = OneSegment("a", {1e9, 1e9});
    Json b = OneSegment("b", {2e9, 2e9});
    a["rule"] = real + "; 512110190592 bytes, write back";
    b["rule"] = simulated + "; 0 bytes";
    return CompareDrives({Drive(a), Drive(b)}).pairs[0].obstacle;
  };
  const std::string real = "score 2: closed loop, idle cap 1 s, max order, as-is, pause 2 s, ";
  const std::string simulated = "score 2: closed loop, idle cap 1 s, max order, as-is, simulated";
  EXPECT_EQ(obstacle(real + "io_uring, a device", simulated), Obstacle::kNone);
  EXPECT_EQ(obstacle(real + "libaio, a file", simulated), Obstacle::kNone);
  EXPECT_EQ(obstacle("score 2: open loop x1, idle cap 1 s, max order, as-is, pause 2 s, io_uring",
                     simulated),
            Obstacle::kOtherRule);
  // Two real ones need all of it.
  EXPECT_EQ(obstacle(real + "io_uring, a device", real + "io_uring, a file"), Obstacle::kOtherRule);
  // It has one state, whatever that of the real one.
  Json fresh = OneSegment("a", {1e9, 1e9});
  fresh["state"] = "fresh";
  fresh["rule"] =
      "score 2: closed loop, idle cap 1 s, max order, fresh before the first cycle, pause 2 s, "
      "io_uring, a file; 7 bytes, write back";
  Json other = OneSegment("b", {2e9, 2e9});
  other["rule"] = simulated + "; 0 bytes";
  EXPECT_EQ(CompareDrives({Drive(fresh), Drive(other)}).pairs[0].obstacle, Obstacle::kNone);
  // Where a report names no state nobody knows where the rule tells it.
  fresh["state"] = other["state"] = "";
  EXPECT_EQ(CompareDrives({Drive(fresh), Drive(other)}).pairs[0].obstacle, Obstacle::kOtherRule);
}

TEST(DriveComparisonTest, OneDriveInTwoStatesTellsWhatTheStateMakesOfIt) {
  const auto scored = [](const std::string& state, const std::string& words, double ns) {
    Json json = OneSegment("same", Spread(ns));
    json["state"] = state;
    json["rule"] =
        "score 2: closed loop, idle cap 1 s, max order, " + words + ", pause 2 s, io_uring";
    json["targets"][0]["serial"] = "S1";
    return json;
  };
  const Json fresh = scored("fresh", "fresh before each cycle", 1e9);
  const Json used = scored("used", "used before each cycle", 1.3e9);
  const DriveComparison all = CompareDrives({Drive(used), Drive(fresh)});
  const DrivePair& pair = all.pairs[0];
  EXPECT_EQ(pair.obstacle, Obstacle::kOtherState);
  EXPECT_TRUE(pair.shows_state());
  EXPECT_TRUE(all.whole());
  EXPECT_EQ(all.drives[pair.first].label, "same (fresh)");
  EXPECT_EQ(all.drives[pair.second].label, "same (used)");
  EXPECT_NEAR(pair.comparison.ratio, 1.3, 1e-9);
  EXPECT_FALSE(all.places[0]) << "it counts for no place";
  // Of another drive in another state there is no verdict, nor where more than the state differs.
  Json other = used;
  other["targets"][0]["serial"] = "S2";
  EXPECT_FALSE(CompareDrives({Drive(fresh), Drive(other)}).pairs[0].shows_state());
  EXPECT_EQ(CompareDrives({Drive(fresh), Drive(scored("used", "used before the first cycle", 1e9))})
                .pairs[0]
                .obstacle,
            Obstacle::kOtherState)
      << "when it was prepared is part of the state";
  Json slower = used;
  slower["rule"] =
      "score 2: closed loop, idle cap 9 s, max order, used before each cycle, pause 2 s, "
      "io_uring";
  EXPECT_EQ(CompareDrives({Drive(fresh), Drive(slower)}).pairs[0].obstacle, Obstacle::kOtherRule);
}

TEST(DriveComparisonTest, AnInvalidScoreGetsNoVerdictAndNoPlace) {
  EXPECT_EQ(ObstacleAfter("valid", false), Obstacle::kInvalid);
}

TEST(DriveComparisonTest, AnInvalidScoreTakesNoPlaceFromTheOthers) {
  Json invalid = OneSegment("b", Spread(1.5e9));
  invalid["valid"] = false;
  invalid["invalid_reasons"] = {"rule 5"};
  const DriveComparison all = CompareDrives(
      {Drive(OneSegment("a", Spread(1e9))), Drive(invalid), Drive(OneSegment("c", Spread(2e9)))});
  EXPECT_THAT(all.places, ElementsAre(Optional(1u), std::nullopt, Optional(2u)));
  // Other work is another matter: nobody knows where that drive would stand.
  Json other = OneSegment("b", Spread(1.5e9));
  other["trace_hash"] = std::string(64, 'b');
  EXPECT_THAT(CompareDrives({Drive(OneSegment("a", Spread(1e9))), Drive(other),
                             Drive(OneSegment("c", Spread(2e9)))})
                  .places,
              ElementsAre(std::nullopt, std::nullopt, std::nullopt));
}

TEST(DriveComparisonTest, AScoreWithoutACycleIsShownButNotCompared) {
  Json none = OneSegment("b", {2e9, 2e9});
  none["valid"] = false;
  none["cycles"] = 0;
  none["segments"] = Json::array();
  none["log_scores"] = Json::array();
  for (const char* key : {"score", "ci_low", "ci_high", "storage_wait_ns"}) none[key] = nullptr;
  const DriveComparison all = CompareDrives({Drive(none), Drive(OneSegment("a", {1e9, 1e9}))});
  EXPECT_EQ(all.pairs[0].obstacle, Obstacle::kInvalid);
  EXPECT_THAT(all.segment_ratios, ElementsAre(IsEmpty(), IsEmpty()));
}

TEST(DriveComparisonTest, OneCycleTellsNoSpread) {
  const DriveComparison all =
      CompareDrives({Drive(OneSegment("a", {1e9})), Drive(OneSegment("b", {2e9, 2e9}))});
  EXPECT_EQ(all.pairs[0].obstacle, Obstacle::kTooFewCycles);
  // By segment they can be looked at all the same.
  EXPECT_THAT(all.segment_ratios[1], ElementsAre(DoubleNear(0.5, 1e-9)));
}

TEST(DriveComparisonTest, ARatioOfASegmentWeighsWaitAndWork) {
  Json b = ScoreReportJson("b", {{1e9, 1e9}, {1e9, 1e9}});
  for (Json& cycle : b["segments"][1]["cycles"]) cycle["wait_ns"] = 0.5e9;
  const DriveComparison all =
      CompareDrives({Drive(ScoreReportJson("a", {{1e9, 1e9}, {1e9, 1e9}})), Drive(b)});
  EXPECT_THAT(all.segment_ratios[0], ElementsAre(DoubleNear(1, 1e-12), DoubleNear(1, 1e-12)));
  // Half the wait, of weight 0.7.
  EXPECT_THAT(all.segment_ratios[1],
              ElementsAre(DoubleNear(1, 1e-12), DoubleNear(std::pow(2, 0.7), 1e-9)));
}

TEST(DriveComparisonTest, DrivesOfOneNameAreToldApartAndOneSerialIsOneDrive) {
  Json one = OneSegment("same", {1e9, 1e9});
  one["targets"][0]["serial"] = "S1";
  const DriveComparison all = CompareDrives({Drive(one), Drive(one)});
  EXPECT_NE(all.drives[0].label, all.drives[1].label);
  EXPECT_THAT(all.same_drive, ElementsAre(std::pair<size_t, size_t>(0, 1)));
}

TEST(MeasuredScoreTest, WhatIsNoReportIsRefused) {
  const Json good = OneSegment("a", {1e9, 1e9});
  EXPECT_TRUE(ParseMeasuredScore(JsonText(good)).ok());
  EXPECT_EQ(ParseMeasuredScore("").status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(ParseMeasuredScore("{\"corners\": 1}").status().code(), StatusCode::kDataLoss);
  for (const auto& [key, unused] : good.items()) {
    // Each of its keys gone, or of another kind.
    Json damaged = good;
    damaged[key] = Json::object({{"x", 1}});
    if (key != "repeated_cycles" && key != "sample" && key != "waits_ns") {
      EXPECT_FALSE(ParseMeasuredScore(JsonText(damaged)).ok()) << key;
    }
    damaged.erase(key);
    EXPECT_EQ(ParseMeasuredScore(JsonText(damaged)).ok(), key == "waits_ns") << key;
  }
  Json bad = good;
  bad["segments"][0]["cycles"][0]["wait_ns"] = -1;
  EXPECT_FALSE(ParseMeasuredScore(JsonText(bad)).ok());
  bad = good;
  bad["cycles"] = uint64_t{1} << 60;
  EXPECT_FALSE(ParseMeasuredScore(JsonText(bad)).ok());
}

TEST(MeasuredScoreTest, AnotherVersionOfTheScoreIsNamed) {
  Json other = OneSegment("a", {1e9, 1e9});
  other["score_version"] = 3;
  const Status status = ParseMeasuredScore(JsonText(other)).status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(status.message(), ::testing::HasSubstr("version 3"));
}

}  // namespace
}  // namespace blktape
