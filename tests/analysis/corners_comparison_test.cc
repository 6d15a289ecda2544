#include "analysis/corners_comparison.h"

#include <string>
#include <utility>

#include "base/json.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace blktape {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::Optional;
Json OneTest(const std::string& name, const Json& bytes_per_second) {
  return {{"group", "depth"},         {"name", name},
          {"condition", ""},          {"bytes_per_second", bytes_per_second},
          {"iops", bytes_per_second}, {"d2c_ns", {{"p99", 7000}}}};
}

Json Corners(const std::string& model, const Json& tests) {
  return {{"corners", 1},
          {"quick", false},
          {"targets", {{{"name", "sdx"}, {"model", model}}}},
          {"tests", tests}};
}

ComparedCorners Drive(const Json& json) {
  Result<MeasuredCorners> corners = ParseMeasuredCorners(JsonText(json));
  EXPECT_TRUE(corners.ok()) << corners.status().message();
  std::string label = corners->drive;
  return {std::move(label), "a file", *std::move(corners)};
}

TEST(CornersComparisonTest, TestsStandBesideThoseOfTheSameName) {
  const CornersComparison all = CompareCorners(
      {Drive(Corners("A", Json::array({OneTest("one", 100), OneTest("two", 50)}))),
       Drive(Corners("B", Json::array({OneTest("three", 7), OneTest("one", 250)})))});
  ASSERT_EQ(all.rows.size(), 3u);
  EXPECT_EQ(all.rows[0].name, "one");
  EXPECT_THAT(all.rows[0].ratios, ElementsAre(Optional(1.0), Optional(2.5)));
  EXPECT_EQ(all.rows[1].name, "two");
  EXPECT_THAT(all.rows[1].ratios, ElementsAre(Optional(1.0), Eq(std::nullopt)));
  EXPECT_EQ(all.rows[2].name, "three");
  EXPECT_FALSE(all.rows[2].tests[0]);
  EXPECT_THAT(all.rows[2].ratios, ElementsAre(Eq(std::nullopt), Eq(std::nullopt)));
}

TEST(CornersComparisonTest, WhatCompletedNothingHasNoRatio) {
  const CornersComparison all =
      CompareCorners({Drive(Corners("A", Json::array({OneTest("one", nullptr)}))),
                      Drive(Corners("A", Json::array({OneTest("one", 250)})))});
  EXPECT_THAT(all.rows[0].ratios, ElementsAre(Eq(std::nullopt), Eq(std::nullopt)));
  EXPECT_NE(all.drives[0].label, all.drives[1].label);
}

TEST(CornersComparisonTest, WhatIsNoReportIsRefused) {
  const Json good = Corners("A", Json::array({OneTest("one", 1)}));
  for (const char* key : {"corners", "quick", "targets", "tests"}) {
    Json bad = good;
    bad.erase(key);
    EXPECT_EQ(ParseMeasuredCorners(JsonText(bad)).status().code(), StatusCode::kDataLoss) << key;
  }
  Json newer = good;
  newer["corners"] = 2;
  EXPECT_EQ(ParseMeasuredCorners(JsonText(newer)).status().code(), StatusCode::kUnimplemented);
  EXPECT_EQ(ParseMeasuredCorners("").status().code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace blktape
