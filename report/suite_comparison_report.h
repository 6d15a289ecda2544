#pragma once

#include <string>
#include <vector>

#include "analysis/suite_score.h"
#include "base/json.h"
#include "report/page.h"
#include "report/text_table.h"

namespace blktape {

// How suites of several drives are shown side by side, as the suites part of results_comparison.h.
// Nothing is computed here. Labels and names are anybody's, as there.

// What to quote: who is faster for the whole, then who ties, then what makes it doubtful.
std::vector<Sentence> SuiteVerdict(const SuiteComparison& comparison);
// The composite of each drive, then its traces: "" as the trace is the whole.
DataTable SuiteTable(const SuiteComparison& all);

std::string SuiteText(const SuiteComparison& all, const TextLook& look);
Json SuitesJson(const SuiteComparison& all);
std::string SuiteMarkdown(const SuiteComparison& all);
// Puts the verdict and the section of suites before what the page has.
void AddSuites(const SuiteComparison& all, Page* page);

}  // namespace blktape
