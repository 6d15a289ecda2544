#include "report/results_comparison.h"

#include <cmath>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "analysis/corners_comparison.h"
#include "analysis/drive_comparison.h"
#include "analysis/suite_score.h"
#include "base/json.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "report/page.h"
#include "tests/analysis/score_json.h"

namespace blktape {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
Json Report(const std::string& model, char trace, double ns) {
  const std::vector<double> costs = {ns * std::exp(0.01), ns, ns * std::exp(-0.01)};
  Json report = ScoreReportJson(model, {costs});
  report["trace"] = std::string(1, trace) + ".tape";
  report["trace_hash"] = std::string(64, trace);
  report["log_scores"] = Json::array();
  for (const double cost : costs) report["log_scores"].push_back(std::log(1e9 / cost));
  return report;
}

ComparedSuite Drive(const std::string& label, double ns, bool valid = true) {
  Json json = {{"suite_version", 1}, {"suite", "office"}, {"traces", Json::array()}};
  for (const char trace : {'a', 'b'}) {
    json["traces"].push_back({{"weight", 1}, {"report", Report(label, trace, ns)}});
  }
  json["traces"][1]["report"]["valid"] = valid;
  if (!valid) json["traces"][1]["report"]["invalid_reasons"] = {"the host was late"};
  Result<SuiteScore> suite = ParseSuiteScore(JsonText(json));
  EXPECT_TRUE(suite.ok()) << suite.status().message();
  return {label, "a file", *std::move(suite)};
}

ComparedCorners Corners(const std::string& label, double rate, double repeated) {
  MeasuredCorners corners;
  corners.drive = label;
  corners.repeated_over_random = repeated;
  for (const char* depth : {"QD 1", "QD 32"}) {
    corners.tests.push_back({"depth", std::string("4 KiB random read, ") + depth + ", span 8 GiB",
                             "", rate, rate / 4096, 100'000.0});
  }
  return {label, "a file", std::move(corners)};
}

std::vector<std::string> Said(const Json& part) {
  std::vector<std::string> said;
  for (const Json& sentence : part["sentences"]) said.push_back(sentence["text"]);
  return said;
}

TEST(ResultsComparisonTest, SaysOfASuiteWhatAReaderCanQuote) {
  ResultsComparison results;
  results.suites = CompareSuites({Drive("A", 1e9), Drive("B", 1.5e9), Drive("C", 1e9)});
  // V = 4 * (1/2)^2 * 0.01^2 / 3 and 8 degrees: t(0.975, 8) = 2.306004 times 0.0057735 is
  // 0.0133137.
  EXPECT_THAT(Said(ResultsJson(results)["suites"]),
              ElementsAre("A is 1.50 (1.48 to 1.52) times as fast as B for the suite office.",
                          "C is 1.50 (1.48 to 1.52) times as fast as B for the suite office.",
                          "A and C tie for the suite office: the first is 1.00 (0.99 to 1.01) "
                          "times as fast as the second."));
  EXPECT_TRUE(results.whole());
}

TEST(ResultsComparisonTest, AnInvalidTraceLooksInvalidInEveryForm) {
  ResultsComparison results;
  results.suites = CompareSuites({Drive("A", 1e9), Drive("B", 1.5e9, /*valid=*/false)});
  EXPECT_FALSE(results.whole());
  EXPECT_THAT(Said(ResultsJson(results)["suites"]),
              ElementsAre("INVALID: the score of B for b.tape: the host was late",
                          "No verdict on A and B for the suite: b.tape: a score that is not valid "
                          "says nothing."));
  EXPECT_THAT(ResultsText(results), HasSubstr("INVALID"));
  EXPECT_THAT(ResultsMarkdown(results), HasSubstr("INVALID"));
  EXPECT_THAT(ResultsCsv(results), HasSubstr(",no\n"));
  EXPECT_THAT(PageHtml(ResultsPage(results)), HasSubstr("INVALID: B"));
}

TEST(ResultsComparisonTest, CornersStandSideBySideAndADriveThatCompressesIsTold) {
  ResultsComparison results;
  results.corners = CompareCorners({Corners("A", 100e6, 1.0), Corners("B", 250e6, 2.0)});
  const std::string text = ResultsText(results);
  EXPECT_THAT(text, HasSubstr("2.50x"));
  EXPECT_THAT(text, HasSubstr("depth: 4 KiB random, read, span 8 GiB")) << "what all share";
  EXPECT_THAT(
      Said(ResultsJson(results)["corners"]),
      ElementsAre("B writes a repeated byte 2.00 times as fast as random data: it compresses "
                  "or deduplicates, and figures of repeated data flatter it."));
  EXPECT_THAT(ResultsCsv(results),
              HasSubstr("depth,,\"4 KiB random read, QD 1, span 8 GiB\",100,"));
}

TEST(ResultsComparisonTest, LinesFitTheTerminalAndNothingSteersIt) {
  const std::string hostile = "a drive\x1b[2J\n</script> of a very, very long name by its maker";
  ResultsComparison results;
  results.suites = CompareSuites({Drive(hostile, 1e9), Drive("B", 2e9)});
  results.corners = CompareCorners({Corners(hostile, 1e8, 1.0), Corners("B", 2e8, 1.0)});
  for (const size_t columns : {79u, 40u}) {
    const std::string text = ResultsText(results, {.columns = columns});
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), columns) << line;
  }
  EXPECT_THAT(PageHtml(ResultsPage(results)), Not(HasSubstr("</script> of a")));
  EXPECT_THAT(ResultsMarkdown(results), Not(HasSubstr("</script>")));
}

}  // namespace
}  // namespace blktape
