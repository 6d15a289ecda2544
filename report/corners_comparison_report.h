#pragma once

#include <string>

#include "analysis/corners_comparison.h"
#include "base/json.h"
#include "report/page.h"
#include "report/text_table.h"

namespace blktape {

// How corners of one or several drives are shown side by side, as the corners part of
// results_comparison.h. Nothing is computed here. Labels and names are anybody's, as there.

// One row a test, for each drive its rates and how many times the first's they are.
DataTable CornersTable(const CornersComparison& all);

std::string CornersText(const CornersComparison& all, const TextLook& look);
Json CornersJson(const CornersComparison& all);
std::string CornersMarkdown(const CornersComparison& all);
// Adds the remarks to the page's verdict and a section before its conditions.
void AddCorners(const CornersComparison& all, Page* page);

}  // namespace blktape
