#pragma once

#include <string>
#include <vector>

#include "analysis/drive_comparison.h"
#include "base/json.h"
#include "report/page.h"
#include "report/text_table.h"

namespace blktape {

// How `blktape compare` shows drives side by side. Nothing is computed here. Labels and names are
// anybody's: data in a page, escaped in Markdown, plain on a terminal.

// What to quote: who is faster, the fastest first, then who ties; then, as bad, what makes it
// doubtful.
std::vector<Sentence> ComparisonVerdict(const DriveComparison& comparison);

// Below the look's columns.
std::string ComparisonText(const DriveComparison& comparison, const TextLook& look = {});
// Keys are defined in docs/score.md and stay.
Json ComparisonJson(const DriveComparison& comparison);
// Verdict, figures and ratios as GitHub's Markdown has tables.
std::string ComparisonMarkdown(const DriveComparison& comparison);
// The table of drives: RFC 4180.
std::string ComparisonCsv(const DriveComparison& comparison);
Page ComparisonPage(const DriveComparison& comparison);

}  // namespace blktape
