#include <optional>
#include <sstream>
#include <string>

#include "analysis/score_report.h"
#include "base/units.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "report/score_report_out.h"

namespace blktape {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ScoreTextTest, ARecordingOfNoLengthHasNoWorkday) {
  ScoreReport report;
  report.waits_ns = {36 * kNanosPerSecond};
  // A single I/O of which the trace does not tell the end.
  EXPECT_EQ(report.storage_wait_s_per_workday(), std::nullopt);
  EXPECT_THAT(ScoreText(report), Not(HasSubstr("workday")));
  report.recording_ns = 3600 * kNanosPerSecond;
  EXPECT_EQ(report.storage_wait_s_per_workday(), 288);
}

TEST(ScoreTextTest, AScoreBelowAThousandHasThreeDigitsOneAboveIsWhole) {
  const auto line = [](double score) {
    ScoreReport report;
    report.score.emplace().score = score;
    report.score->ci_low = score / 10;
    report.score->ci_high = score * 10;
    const std::string text = ScoreText(report);
    return text.substr(0, text.find(','));
  };
  EXPECT_EQ(line(0.76923), "Score         0.769   95 % interval 0.0769 to 7.69");
  EXPECT_EQ(line(12.3457), "Score         12.3   95 % interval 1.23 to 123");
  EXPECT_EQ(line(344.2), "Score         344   95 % interval 34.4 to 3442");
  EXPECT_EQ(line(1000), "Score         1000   95 % interval 100 to 10000");
  EXPECT_EQ(line(12345.6), "Score         12346   95 % interval 1235 to 123456");
}

TEST(ScoreTextTest, APercentileOfTooFewIsNotGiven) {
  ScoreReport report;
  ScoredRun& run = report.runs.emplace_back();
  run.label = "cycle 1, closed";
  run.lateness.Add(5 * kNanosPerMilli);
  std::istringstream lines(ScoreText(report));
  std::string row;
  while (row.find("cycle 1, closed") == std::string::npos) ASSERT_TRUE(std::getline(lines, row));
  EXPECT_THAT(row, ContainsRegex("0 ns +n/a +5.00 ms +n/a"));
}

TEST(ScoreTextTest, ARowWithAMarkStaysBelow80Columns) {
  ScoreReport report;
  for (const bool repeated : {true, false}) {
    ScoredRun& run = report.runs.emplace_back();
    run.label = "cycle 10, closed";
    run.repeated = repeated;
    if (!repeated) run.invalid_reasons.push_back({.rule = 3, .text = "late", .run = {}});
  }
  std::istringstream lines(ScoreText(report));
  int marked = 0;
  for (std::string row; std::getline(lines, row);) {
    marked += row.ends_with(" r") || row.ends_with(" !") ? 1 : 0;
    EXPECT_LT(row.size(), 80u) << row;
  }
  EXPECT_EQ(marked, 2);
}

}  // namespace
}  // namespace blktape
