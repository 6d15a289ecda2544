#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analysis/corners_comparison.h"
#include "report/page.h"

namespace blktape {

// The rows of one group of corners: what all of them share, and of each row what tells it apart.
struct CornerGroupRows {
  std::string name;
  std::string shared;
  std::vector<std::pair<std::string, const CornersComparison::Row*>> rows;
};

// In their order. `all` must outlive them.
std::vector<CornerGroupRows> GroupsOf(const CornersComparison& all);

// Adds the corners as figures: rates by queue depth, bars of each other group, the torture over
// time. Their tables are added to the page, their parts to the section.
void AddCornersFigures(const CornersComparison& all, Page* page, Section* section);

}  // namespace blktape
