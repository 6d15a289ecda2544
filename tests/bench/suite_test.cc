#include "bench/suite.h"

#include <string>
#include <string_view>

#include "analysis/suite_score.h"
#include "base/json.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/analysis/score_json.h"

namespace blktape {
namespace {

using ::testing::HasSubstr;
TEST(SuiteTest, ALineIsAWeightAndAPath) {
  const Result<Suite> suite =
      ParseSuite("# what we do\n\n  3\tmonday's work.tape  \r\n0.5 sub/../b.tape\n1e1 /data/c.tape",
                 "suites/office.suite");
  ASSERT_TRUE(suite.ok()) << suite.status().message();
  EXPECT_EQ(suite->name, "office");
  ASSERT_EQ(suite->traces.size(), 3u);
  EXPECT_EQ(suite->traces[0].weight, 3);
  EXPECT_EQ(suite->traces[0].path, "suites/monday's work.tape");
  EXPECT_EQ(suite->traces[1].weight, 0.5);
  EXPECT_EQ(suite->traces[1].path, "suites/b.tape");
  EXPECT_EQ(suite->traces[2].weight, 10);
  EXPECT_EQ(suite->traces[2].path, "/data/c.tape");
}

TEST(SuiteTest, WhatCannotBeReadIsNamedByItsLine) {
  const auto said = [](std::string_view text) {
    const Status status = ParseSuite(text, "x.suite").status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << text;
    return status.message();
  };
  EXPECT_THAT(said("1 a.tape\nb.tape 1\n"), HasSubstr("x.suite, line 2: \"b.tape\" is no weight"));
  for (const char* weight : {"0", "-1", "nan", "inf", "1,5", "2x"}) {
    EXPECT_THAT(said(std::string(weight) + " a.tape"), HasSubstr("is no weight"));
  }
  EXPECT_THAT(said("1"), HasSubstr("names no trace"));
  EXPECT_THAT(said("1 a.tape\n2 ./a.tape"), HasSubstr("line 2: ./a.tape is named twice"));
  EXPECT_THAT(said("# nothing\n"), HasSubstr("the suite names no trace"));
  std::string many;
  for (size_t i = 0; i <= kMostSuiteTraces; ++i) many += "1 " + std::to_string(i) + ".tape\n";
  EXPECT_THAT(said(many), HasSubstr("at most 100"));
}

TEST(SuiteTest, ItsResultIsReadAgain) {
  Suite suite{.name = "office", .traces = {{3, "a.tape"}, {1, "b.tape"}}};
  const std::string report = JsonText(ScoreReportJson("drive", {{1e9, 1e9}}));
  const Result<std::string> text = SuiteResultText(suite, /*order_seed=*/7, {report, report});
  ASSERT_TRUE(text.ok()) << text.status().message();
  const Result<SuiteScore> score = ParseSuiteScore(*text);
  ASSERT_TRUE(score.ok()) << score.status().message();
  EXPECT_EQ(score->name, "office");
  EXPECT_EQ(score->drive(), "drive");
  EXPECT_DOUBLE_EQ(score->share(0), 0.75);
  const Json json = ParseJson(*text);
  EXPECT_EQ(json["order_seed"], 7);
  EXPECT_EQ(json["score"], score->composite()->score);
  EXPECT_EQ(SuiteResultText(suite, 7, {report, "{}"}).status().code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace blktape
