#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/drive_comparison.h"
#include "analysis/score_evidence.h"
#include "report/comparison_parts.h"
#include "report/page.h"
#include "report/table_maker.h"

namespace blktape {
namespace {

// One below the other, as drives take different times: each has its rows.
void AddSeries(const DriveComparison& all, Section* section, Page* page) {
  TableMaker table("over_time", "Over the time of a replay");
  table.Column("drive", "drive", Unit::kText)
      .Column("from_ns", "from", Unit::kDurationNs)
      .Column("bytes_per_s", "throughput", Unit::kBytesPerSecond)
      .Column("ios_per_s", "I/Os", Unit::kPerSecond)
      .Column("p99_ns", "p99 response", Unit::kDurationNs)
      .Column("max_ns", "longest response", Unit::kDurationNs)
      .Column("depth_mean", "mean depth", Unit::kNumber);
  Chart chart{.kind = Chart::Kind::kLines,
              .x = "from_ns",
              .x_axis = {"time in the replay", Unit::kDurationNs},
              .panels = {{"throughput", Unit::kBytesPerSecond},
                         {"p99 response, log scale", Unit::kDurationNs, true},
                         {"mean queue depth", Unit::kNumber}},
              .zoom = true,
              .height = 150};
  std::string alt;
  double longest_step_ns = 0;
  for (size_t i = 0; i < all.drives.size(); ++i) {
    const auto& series = all.drives[i].score.evidence.series;
    if (!series) continue;
    const size_t first_row = table.rows();
    for (size_t k = 0; k < series->ios_per_s.size(); ++k) {
      table.Row({all.drives[i].label, static_cast<double>(k) * series->step_ns,
                 CellOf(series->bytes_per_s[k]), CellOf(series->ios_per_s[k]),
                 CellOf(series->p99_ns[k]), CellOf(series->max_ns[k]),
                 CellOf(series->depth_mean[k])});
    }
    size_t panel = 0;
    for (const char* column : {"bytes_per_s", "p99_ns", "depth_mean"}) {
      Chart::Series one = SeriesOf(i, column);
      one.panel = panel++;
      one.first_row = first_row;
      one.end_row = table.rows();
      one.label = LabelOf(all.drives[i]);
      one.step = true;
      chart.series.push_back(std::move(one));
    }
    longest_step_ns = std::max(longest_step_ns, series->step_ns);
    alt += (alt.empty() ? "" : "; ") + all.drives[i].label + ": " + series->run + ", " +
           CellText(series->step_ns * static_cast<double>(series->ios_per_s.size()),
                    Unit::kDurationNs);
  }
  if (chart.series.empty()) return;
  table.MostShown(400);
  page->tables.push_back(table.Take());
  section->parts.emplace_back(
      Figure{.id = "over-time",
             .title = "Throughput, tail and depth",
             .subtitle = fmt::format(
                 "of each drive the cycle with the median wait; each point is at most {}; the p99 "
                 "where a point has 100 I/Os that somebody waits for",
                 CellText(longest_step_ns, Unit::kDurationNs)),
             .alt = alt,
             .table = "over_time",
             .chart = std::move(chart),
             .wide = true});
}

struct Warmth {
  double at_ns;
  double celsius;
};

std::vector<Warmth> WarmthOf(const ScoreEvidence& evidence, double first_ns) {
  std::vector<Warmth> warmth;
  for (const ScoreEvidence::Run& run : evidence.runs) {
    if (!run.began_ns) continue;
    const double from_ns = *run.began_ns - first_ns;
    if (run.celsius_before) warmth.push_back({from_ns, *run.celsius_before});
    if (run.celsius_after) warmth.push_back({from_ns + run.wall_ns, *run.celsius_after});
  }
  std::stable_sort(warmth.begin(), warmth.end(),
                   [](const Warmth& a, const Warmth& b) { return a.at_ns < b.at_ns; });
  return warmth;
}

void AddTemperature(const DriveComparison& all, Section* section, Page* page) {
  std::optional<double> first_ns;
  for (const ComparedDrive& drive : all.drives) {
    for (const ScoreEvidence::Run& run : drive.score.evidence.runs) {
      if (run.began_ns) first_ns = std::min(first_ns.value_or(*run.began_ns), *run.began_ns);
    }
  }
  if (!first_ns) return;
  TableMaker table("temperature", "Temperature before and after each run");
  table.Column("drive", "drive", Unit::kText)
      .Column("at_ns", "time", Unit::kDurationNs)
      .Column("celsius", "temperature", Unit::kCelsius);
  Chart chart{.kind = Chart::Kind::kLines,
              .x = "at_ns",
              .x_axis = {"time since the first run", Unit::kDurationNs},
              .panels = {{"temperature", Unit::kCelsius, false, true}},
              .height = 220};
  std::string alt;
  for (size_t i = 0; i < all.drives.size(); ++i) {
    const std::vector<Warmth> warmth = WarmthOf(all.drives[i].score.evidence, *first_ns);
    if (warmth.empty()) continue;
    const size_t first_row = table.rows();
    for (const Warmth& one : warmth) table.Row({all.drives[i].label, one.at_ns, one.celsius});
    Chart::Series series = SeriesOf(i, "celsius");
    series.first_row = first_row;
    series.end_row = table.rows();
    series.label = LabelOf(all.drives[i]);
    chart.series.push_back(std::move(series));
    const auto [low, high] =
        std::minmax_element(warmth.begin(), warmth.end(),
                            [](const Warmth& a, const Warmth& b) { return a.celsius < b.celsius; });
    alt += (alt.empty() ? "" : "; ") + all.drives[i].label +
           fmt::format(": {:.3g} to {:.3g} °C", low->celsius, high->celsius);
  }
  if (chart.series.empty()) return;
  page->tables.push_back(table.Take());
  section->parts.emplace_back(
      Figure{.id = "temperature",
             .title = "Temperature",
             .subtitle = "as the drive tells it before and after each run, over the whole bench",
             .alt = alt,
             .table = "temperature",
             .chart = std::move(chart),
             .wide = true});
}

}  // namespace

void AddOverTime(const DriveComparison& all, Page* page) {
  Section section{"over-time-section", "Over time", {}};
  AddSeries(all, &section, page);
  AddTemperature(all, &section, page);
  if (!section.parts.empty()) page->sections.push_back(std::move(section));
}

}  // namespace blktape
