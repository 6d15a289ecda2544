#include "report/results_comparison.h"

#include <fmt/format.h>

#include <cstddef>

#include "base/json.h"
#include "base/version.h"
#include "report/comparison_report.h"
#include "report/corners_comparison_report.h"
#include "report/suite_comparison_report.h"

namespace blktape {
namespace {

// What `compare` says where no scores were compared.
Json WithoutScores() {
  return {{"compare", 1},
          {"tool_version", kVersion},
          {"sentences", Json::array()},
          {"drives", Json::array()},
          {"pairs", Json::array()}};
}

}  // namespace

bool ResultsComparison::whole() const {
  return (!scores || scores->whole()) && (!suites || suites->whole());
}

std::string ResultsText(const ResultsComparison& results, const TextLook& look) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : "\n") + part; };
  if (results.suites) add(SuiteText(*results.suites, look));
  if (results.scores) add(ComparisonText(*results.scores, look));
  if (results.corners) add(CornersText(*results.corners, look));
  return text;
}

Json ResultsJson(const ResultsComparison& results) {
  Json json = results.scores ? ComparisonJson(*results.scores) : WithoutScores();
  if (results.suites) json["suites"] = SuitesJson(*results.suites);
  if (results.corners) json["corners"] = CornersJson(*results.corners);
  return json;
}

std::string ResultsMarkdown(const ResultsComparison& results) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : "\n") + part; };
  if (results.suites) add(SuiteMarkdown(*results.suites));
  if (results.scores) add(ComparisonMarkdown(*results.scores));
  if (results.corners) add(CornersMarkdown(*results.corners));
  return text;
}

std::string ResultsCsv(const ResultsComparison& results) {
  if (results.scores) return ComparisonCsv(*results.scores);
  Page page;
  page.tables.push_back(results.suites ? SuiteTable(*results.suites)
                                       : CornersTable(*results.corners));
  return PageCsv(page).front().second;
}

Page ResultsPage(const ResultsComparison& results) {
  Page page;
  if (results.scores) {
    page = ComparisonPage(*results.scores);
  } else {
    const size_t drives =
        results.suites ? results.suites->drives.size() : results.corners->drives.size();
    page.title = drives == 1 ? "One drive" : fmt::format("{} drives compared", drives);
    page.subtitle = results.suites ? "for the suite " + results.suites->drives.front().suite.name
                                   : "by the classic synthetic tests";
    page.footer = fmt::format("blktape {}", kVersion);
  }
  if (results.suites) AddSuites(*results.suites, &page);
  if (results.corners) AddCorners(*results.corners, &page);
  return page;
}

}  // namespace blktape
