#include <string>
#include <utility>

#include "analysis/drive_comparison.h"
#include "analysis/score.h"
#include "report/comparison_parts.h"
#include "report/page.h"
#include "report/table_maker.h"

namespace blktape {

void AddStates(const DriveComparison& all, Page* page) {
  TableMaker table("states", "One drive in two states");
  table.Column("states", "faster, slower", Unit::kText)
      .Column("ratio", "times as fast", Unit::kNumber)
      .Column("ratio_low", "from", Unit::kNumber)
      .Column("ratio_high", "to", Unit::kNumber)
      .Column("note", "note", Unit::kText);
  std::string alt;
  Chart chart{.x = "states",
              .panels = {{"times as fast", Unit::kNumber}},
              .series = {{.column = "ratio", .low = "ratio_low", .high = "ratio_high"}},
              .horizontal = true,
              .colour_by_row = true,
              .values = true,
              .note = "note",
              .marks = {{1, 1, "alike"}}};
  for (const DrivePair& pair : all.pairs) {
    if (!pair.shows_state()) continue;
    const Comparison& told = pair.comparison;
    const std::string& first = all.drives[pair.first].label;
    const std::string& second = all.drives[pair.second].label;
    const bool tie = told.verdict == Verdict::kTie;
    table.Row({first + " to " + second, told.ratio, told.ratio_low, told.ratio_high,
               std::string(tie ? "a tie" : "")});
    chart.row_colours.push_back(static_cast<int>(pair.first));
    alt += (alt.empty() ? "" : "; ") + first + " is " + CellText(told.ratio, Unit::kNumber) +
           " times as fast as " + second + (tie ? ", a tie" : "");
  }
  if (table.rows() == 0) return;
  chart.height = static_cast<int>(70 + 40 * table.rows());
  page->tables.push_back(table.Take());
  page->sections.push_back(
      {"states",
       "New against used",
       {Figure{.id = "state-ratios",
               .title = "What its state makes of a drive",
               .subtitle = "how many times as fast the faster state is; lines are 95 % intervals",
               .alt = alt,
               .table = "states",
               .chart = std::move(chart),
               .wide = true}}});
}

}  // namespace blktape
