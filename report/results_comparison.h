#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/corners_comparison.h"
#include "analysis/drive_comparison.h"
#include "analysis/suite_score.h"
#include "base/json.h"
#include "report/page.h"
#include "report/text_table.h"

namespace blktape {

// Results of every kind side by side, as `blktape compare` and `bench` show them: scores, suites
// and corners. Nothing is computed here. Labels and names are anybody's: data in a page, escaped in
// Markdown, plain on a terminal.
struct ResultsComparison {
  // Absent where there is none of the kind, or a single one; of corners one is shown too.
  std::optional<DriveComparison> scores = {};
  std::optional<SuiteComparison> suites = {};
  std::optional<CornersComparison> corners = {};

  // Every two drives get a verdict.
  bool whole() const;
};

// Below the look's columns.
std::string ResultsText(const ResultsComparison& results, const TextLook& look = {});
// Keys are defined in docs/score.md and stay.
Json ResultsJson(const ResultsComparison& results);
std::string ResultsMarkdown(const ResultsComparison& results);
// RFC 4180; one table of the kind there is. `results` holds one kind.
std::string ResultsCsv(const ResultsComparison& results);
Page ResultsPage(const ResultsComparison& results);

}  // namespace blktape
