#include "report/comparison_report.h"

#include <cmath>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "analysis/drive_comparison.h"
#include "analysis/measured_score.h"
#include "base/json.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "report/comparison_words.h"
#include "report/page.h"
#include "tests/analysis/score_json.h"

namespace blktape {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
TEST(ScoreDigitsTest, AScoreBelowAThousandHasThreeDigitsOneAboveIsWhole) {
  EXPECT_EQ(ScoreDigits(0.76923), "0.769");
  EXPECT_EQ(ScoreDigits(12.3457), "12.3");
  EXPECT_EQ(ScoreDigits(344.2), "344");
  EXPECT_EQ(ScoreDigits(999.4), "999");
  EXPECT_EQ(ScoreDigits(999.6), "1000");
  EXPECT_EQ(ScoreDigits(1000), "1000");
  EXPECT_EQ(ScoreDigits(12345.6), "12346");
}

ComparedDrive Drive(const Json& json) {
  Result<MeasuredScore> score = ParseMeasuredScore(JsonText(json));
  EXPECT_TRUE(score.ok()) << score.status().message();
  std::string label = score->name();
  return {std::move(label), "a file", *std::move(score)};
}

Json Report(const std::string& model, double ns) {
  return ScoreReportJson(model, {{ns * std::exp(0.01), ns, ns * std::exp(-0.01)}});
}

// A is 1.42 times as fast as B; A and C are alike.
DriveComparison Three() {
  return CompareDrives(
      {Drive(Report("A", 1e9)), Drive(Report("B", 1.42e9)), Drive(Report("C", 1.001e9))});
}

std::vector<std::string> Said(const DriveComparison& comparison) {
  std::vector<std::string> said;
  const Json json = ComparisonJson(comparison);
  for (const Json& sentence : json["sentences"]) {
    said.push_back(sentence["text"]);
  }
  return said;
}

TEST(ComparisonReportTest, SaysWhatAReaderCanQuote) {
  // Welch's half width is 0.0226696 (drive_comparison_test): 1.42 times 0.97759 and 1.02293, and
  // 1.42 / 1.001 and 1.001 likewise.
  EXPECT_THAT(
      Said(Three()),
      ElementsAre(
          "A is 1.42 (1.39 to 1.45) times as fast as B for this work.",
          "C is 1.42 (1.39 to 1.45) times as fast as B for this work.",
          "A and C tie for this work: the first is 1.00 (0.98 to 1.02) times as fast as the "
          "second."));
}

TEST(ComparisonReportTest, WhatMakesATargetLookTooFastIsSaidOfIt) {
  Json report = Report("B", 1.42e9);
  report["notes"] = {"3 MiB of scratch.img were unwritten"};
  const DriveComparison comparison = CompareDrives({Drive(Report("A", 1e9)), Drive(report)});
  EXPECT_THAT(ComparisonText(comparison),
              HasSubstr("\nNote       B: 3 MiB of scratch.img were unwritten\n"));
  EXPECT_THAT(ComparisonText(comparison), Not(HasSubstr("Note       A")));
  const Json json = ComparisonJson(comparison);
  EXPECT_EQ(json["drives"][0]["notes"], Json::array());
  EXPECT_EQ(json["drives"][1]["notes"], report["notes"]);
  EXPECT_THAT(ComparisonMarkdown(comparison), HasSubstr("3 MiB of scratch.img were unwritten"));
  EXPECT_THAT(PageHtml(ComparisonPage(comparison)),
              HasSubstr("B: 3 MiB of scratch.img were unwritten."));
}

TEST(ComparisonReportTest, TextStaysBelow80Columns) {
  Json invalid = Report(std::string(300, 'y'), 2e9);
  invalid["valid"] = false;
  invalid["invalid_reasons"] = {
      "cycle 1, closed: rule 3: the host was late: " + std::string(200, 'z') + " and more of it"};
  for (const DriveComparison& comparison :
       {Three(), CompareDrives({Drive(Report("Samsung SSD 990 PRO with Heatsink 2TB", 1e9)),
                                Drive(invalid)})}) {
    std::istringstream text(ComparisonText(comparison));
    for (std::string line; std::getline(text, line);) {
      // A word without a blank cannot be broken.
      if (line.find(std::string(60, 'z')) == std::string::npos &&
          line.find(std::string(60, 'y')) == std::string::npos) {
        EXPECT_LT(line.size(), 80u) << line;
      }
    }
  }
}

TEST(ComparisonReportTest, AnInvalidScoreLooksInvalidEverywhere) {
  Json invalid = Report("B", 2e9);
  invalid["valid"] = false;
  invalid["invalid_reasons"] = {"rule 5: someone else did I/O"};
  const DriveComparison comparison = CompareDrives({Drive(Report("A", 1e9)), Drive(invalid)});
  EXPECT_THAT(Said(comparison),
              ElementsAre("INVALID: the score of B: rule 5: someone else did I/O",
                          "No verdict on A and B: a score that is not valid says nothing."));
  EXPECT_THAT(ComparisonText(comparison), HasSubstr("INVALID"));
  EXPECT_THAT(ComparisonMarkdown(comparison), HasSubstr("INVALID: the score of B"));
  EXPECT_THAT(PageHtml(ComparisonPage(comparison)), HasSubstr("INVALID: B"));
  EXPECT_THAT(ComparisonCsv(comparison), HasSubstr(",no,"));
  const Json json = ComparisonJson(comparison);
  EXPECT_EQ(json["pairs"][0]["verdict"], nullptr);
  EXPECT_EQ(json["pairs"][0]["obstacle"], "invalid");
  EXPECT_EQ(json["drives"][1]["valid"], false);
}

TEST(ComparisonReportTest, DifferentRulesAreNamedAndGetNoVerdict) {
  Json other = Report("B", 2e9);
  other["rule"] = "score 2: open loop; 1 byte";
  const DriveComparison comparison = CompareDrives({Drive(Report("A", 1e9)), Drive(other)});
  EXPECT_THAT(Said(comparison),
              ElementsAre("No verdict on A and B: they were measured by different rules, which "
                          "are below."));
  EXPECT_THAT(ComparisonText(comparison), HasSubstr("B: score 2: open loop\n"));
}

TEST(ComparisonReportTest, NoNameIsMarkupOrSteersATerminal) {
  const std::string hostile = "</script><b>|\x1b[31m\n\u202e";
  Json bad = Report(hostile, 1e9);
  for (const char* key : {"trace", "state", "rule", "reference", "piece"}) bad[key] = hostile;
  bad["valid"] = false;
  bad["invalid_reasons"] = {hostile};
  const DriveComparison comparison = CompareDrives({Drive(bad), Drive(Report("B", 2e9))});
  const std::string html = PageHtml(ComparisonPage(comparison));
  EXPECT_THAT(html, Not(HasSubstr("</script><b>")));
  const std::string markdown = ComparisonMarkdown(comparison);
  EXPECT_THAT(markdown, Not(HasSubstr("<b>")));
  EXPECT_THAT(markdown, Not(HasSubstr("<b>|")));
  EXPECT_THAT(markdown, Not(HasSubstr("\x1b")));
  EXPECT_THAT(ComparisonText(comparison), Not(HasSubstr("\x1b")));
  EXPECT_THAT(JsonText(ComparisonJson(comparison)), Not(HasSubstr("\x1b")));
}

TEST(ComparisonReportTest, CsvHasALineForEachDrive) {
  EXPECT_EQ(ComparisonCsv(CompareDrives({Drive(Report("A", 1e9)), Drive(Report("B", 2e9))})),
            "drive,place,score,ci_low,ci_high,storage_wait_ns,storage_wait_s_per_workday,cycles,"
            "state,valid,source\n"
            "A,1,1000,990,1010,41000000000,328,3,as-is,yes,a file\n"
            "B,2,1000,990,1010,41000000000,328,3,as-is,yes,a file\n");
}

TEST(ComparisonReportTest, SegmentsAreDrawnWhereThereAreSome) {
  const auto two = [](const std::string& model, double ns) {
    return Drive(ScoreReportJson(model, {{ns, ns}, {ns, ns}}));
  };
  EXPECT_THAT(PageHtml(ComparisonPage(CompareDrives({two("A", 1e9), two("B", 2e9)}))),
              HasSubstr("segment-ratios"));
  EXPECT_THAT(PageHtml(ComparisonPage(Three())), Not(HasSubstr("segment-ratios")));
}

}  // namespace
}  // namespace blktape
