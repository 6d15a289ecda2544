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

std::string KeyOf(size_t drive) { return fmt::format("ratio_{}", drive + 1); }

// The trace's segments as the first drive's report has them; none where it does not tell.
const std::vector<ScoreEvidence::Segment>& SegmentsOf(const DriveComparison& all) {
  return all.drives.front().score.evidence.segments;
}

// When each begins is known, and they ascend.
bool HasTimes(const DriveComparison& all, size_t count) {
  const auto& segments = SegmentsOf(all);
  return segments.size() == count && count > 0 &&
         std::all_of(segments.begin(), segments.end(),
                     [](const auto& segment) { return segment.from_ns.has_value(); }) &&
         segments.back().from_ns > segments.front().from_ns &&
         std::is_sorted(segments.begin(), segments.end(),
                        [](const auto& a, const auto& b) { return *a.from_ns < *b.from_ns; });
}

DataTable SegmentsTable(const DriveComparison& all, size_t count, bool timed) {
  TableMaker table("segments", "By segment");
  table.Column("segment", "segment", Unit::kCount);
  if (timed) table.Column("from_ns", "recorded from", Unit::kTimeNs);
  const auto& segments = SegmentsOf(all);
  const bool told = segments.size() == count;
  if (told) {
    table.Column("reads_to_16k", "reads to 16 KiB", Unit::kCount)
        .Column("reads_over_16k", "larger reads", Unit::kCount)
        .Column("sync_writes_and_flushes", "saves", Unit::kCount)
        .Column("bytes", "bytes", Unit::kBytes);
  }
  for (size_t i = 0; i < all.drives.size(); ++i) {
    if (!all.segment_ratios[i].empty()) {
      table.Column(KeyOf(i), LabelOf(all.drives[i]), Unit::kNumber);
    }
  }
  for (size_t k = 0; k < count; ++k) {
    std::vector<Cell> row = {uint64_t{k + 1}};
    if (timed) row.push_back(CellOf(segments[k].from_ns));
    if (told) {
      for (const uint64_t ios : segments[k].by_class) row.emplace_back(ios);
      row.emplace_back(segments[k].bytes);
    }
    for (const std::vector<double>& ratios : all.segment_ratios) {
      if (!ratios.empty()) row.emplace_back(ratios[k]);
    }
    table.Row(std::move(row));
  }
  return table.Take();
}

// How often each drive is the fastest one.
std::string Wins(const DriveComparison& all, size_t count) {
  std::vector<size_t> wins(all.drives.size());
  for (size_t k = 0; k < count; ++k) {
    std::optional<size_t> best;
    for (size_t i = 0; i < all.drives.size(); ++i) {
      const std::vector<double>& ratios = all.segment_ratios[i];
      if (!ratios.empty() && (!best || ratios[k] > all.segment_ratios[*best][k])) best = i;
    }
    if (best) ++wins[*best];
  }
  std::string text;
  for (const size_t i : ByPlace(all)) {
    if (wins[i] == 0) continue;
    text += (text.empty() ? "" : ", ") + all.drives[i].label +
            fmt::format(" is the fastest in {} of {}", wins[i], count);
  }
  return text;
}

}  // namespace

void AddWhere(const DriveComparison& all, Page* page) {
  const size_t count = all.segment_ratios.front().size();
  // One segment, which is the whole, is no line.
  if (count < 2) return;
  const bool timed = HasTimes(all, count);
  page->tables.push_back(SegmentsTable(all, count, timed));
  Chart chart{.kind = Chart::Kind::kLines,
              .x = timed ? "from_ns" : "segment",
              .x_axis = {timed ? "time in the recording" : "segment of the trace",
                         timed ? Unit::kTimeNs : Unit::kCount},
              .panels = {{"times as fast, log scale", Unit::kNumber, true, true}}};
  for (size_t i = 0; i < all.drives.size(); ++i) {
    if (all.segment_ratios[i].empty()) continue;
    Chart::Series series = SeriesOf(i, KeyOf(i));
    series.step = timed;
    chart.series.push_back(std::move(series));
  }
  if (timed) chart.x_end = static_cast<double>(all.drives.front().score.recording_ns);
  if (chart.x_end <= SegmentsOf(all).back().from_ns.value_or(0)) chart.x_end = 0;
  const std::string& base = all.drives.front().label;
  const std::string wins = Wins(all, count);
  page->sections.push_back(
      {"segments",
       "Where a drive wins",
       {Figure{.id = "segment-ratios",
               .title = "Speed over the work",
               .subtitle = "how many times as fast as " + base +
                           " in each segment of the trace; above 1 is faster; " + wins,
               .alt = wins + "; " + base + " is 1 throughout. The table has each segment.",
               .table = "segments",
               .chart = std::move(chart),
               .wide = true}}});
}

}  // namespace blktape
