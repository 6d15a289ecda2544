#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
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

std::string CountsText(const ScoreEvidence::Run& run) {
  std::string text = run.repeated ? "no, measured again" : run.invalid_reasons.empty() ? "yes" : "";
  for (const std::string& reason : run.invalid_reasons) {
    text += (text.empty() ? "INVALID: " : ": ") + reason;
    break;
  }
  return text;
}

std::optional<double> FirstBegin(const DriveComparison& all) {
  std::optional<double> first_ns;
  for (const ComparedDrive& drive : all.drives) {
    for (const ScoreEvidence::Run& run : drive.score.evidence.runs) {
      if (run.began_ns) first_ns = std::min(first_ns.value_or(*run.began_ns), *run.began_ns);
    }
  }
  return first_ns;
}

// In the order in which they ran, where that is known.
DataTable RunsTable(const DriveComparison& all) {
  struct Row {
    size_t drive;
    const ScoreEvidence::Run* run;
  };
  std::vector<Row> rows;
  bool warm = false;
  for (size_t i = 0; i < all.drives.size(); ++i) {
    for (const ScoreEvidence::Run& run : all.drives[i].score.evidence.runs) {
      rows.push_back({i, &run});
      warm = warm || run.celsius_before || run.celsius_after;
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.run->began_ns.value_or(0) < b.run->began_ns.value_or(0);
  });
  TableMaker table("runs", "Every run");
  table.Column("drive", "drive", Unit::kText)
      .Column("run", "run", Unit::kText)
      .Column("began_ns", "began after", Unit::kDurationNs)
      .Column("wall_ns", "took", Unit::kDurationNs)
      .Column("wait_ns", "wait", Unit::kDurationNs)
      .Column("busy_ns", "busy", Unit::kDurationNs)
      .Column("d2c_p99_ns", "p99 service", Unit::kDurationNs)
      .Column("late_p999_ns", "host late, p99.9", Unit::kDurationNs)
      .Column("late_max_ns", "longest", Unit::kDurationNs)
      .Column("errors", "errors", Unit::kCount);
  if (warm) {
    table.Column("celsius_before", "before", Unit::kCelsius)
        .Column("celsius_after", "after", Unit::kCelsius);
  }
  table.Column("counts", "counts", Unit::kText);
  const std::optional<double> first_ns = FirstBegin(all);
  for (const auto& [drive, run] : rows) {
    std::vector<Cell> row = {
        all.drives[drive].label,
        run->label,
        run->began_ns ? Cell(*run->began_ns - *first_ns) : Cell(),
        run->wall_ns,
        run->waits() ? Cell(run->wait_ns) : Cell(),
        run->busy_ns,
        CellOf(run->d2c_p99_ns),
        CellOf(run->late_p999_ns),
        CellOf(run->late_max_ns),
        run->errors,
    };
    if (warm) {
      row.push_back(CellOf(run->celsius_before));
      row.push_back(CellOf(run->celsius_after));
    }
    row.emplace_back(CountsText(*run));
    table.Row(std::move(row));
  }
  return table.Take();
}

// Where any I/O was late by any time.
void AddLateness(const DriveComparison& all, Section* section, Page* page) {
  const auto of = [&](size_t i) -> const ScoreEvidence::Percentiles& {
    return all.drives[i].score.evidence.lateness;
  };
  const auto late = [&](size_t i) {
    return std::any_of(of(i).ns.begin(), of(i).ns.end(),
                       [](const auto& ns) { return ns && *ns > 0; });
  };
  TableMaker table("lateness", "How late the host issued");
  table.Column("one_in", "percentile", Unit::kOneIn);
  Chart chart{.kind = Chart::Kind::kLines,
              .x = "one_in",
              .x_axis = {"percentile, log scale of what is beyond it", Unit::kOneIn, true},
              .panels = {{"lateness, log scale", Unit::kDurationNs, true}},
              .height = 240};
  std::string alt;
  std::string never;
  for (size_t i = 0; i < all.drives.size(); ++i) {
    if (of(i).ns.empty()) continue;
    if (!late(i)) {
      never += (never.empty() ? "" : ", ") + all.drives[i].label;
      continue;
    }
    const std::string key = fmt::format("ns_{}", i + 1);
    table.Column(key, LabelOf(all.drives[i]), Unit::kDurationNs);
    chart.series.push_back(SeriesOf(i, key));
    for (size_t p = 0; p < kShownPercentilesPpm.size(); ++p) {
      if (kShownPercentilesPpm[p] != 999'000 || !of(i).ns[p]) continue;
      alt += (alt.empty() ? "" : "; ") + all.drives[i].label + ": 99.9 % below " +
             CellText(*of(i).ns[p], Unit::kDurationNs);
    }
  }
  if (!chart.series.empty()) {
    for (size_t p = 0; p < kShownPercentilesPpm.size(); ++p) {
      std::vector<Cell> row = {1e6 / (1e6 - kShownPercentilesPpm[p])};
      for (size_t i = 0; i < all.drives.size(); ++i) {
        if (!of(i).ns.empty() && late(i)) row.push_back(CellOf(of(i).ns[p]));
      }
      table.Row(std::move(row));
    }
    page->tables.push_back(table.Take());
    section->parts.emplace_back(Figure{
        .id = "host-lateness",
        .title = "Was every I/O issued in time?",
        .subtitle = "the host's lateness: how long after it was due and the drive had a free "
                    "place an I/O was issued; all cycles that count together. It is in no "
                    "cost of a closed loop",
        .alt = "lateness of the host: " + alt,
        .table = "lateness",
        .chart = std::move(chart),
        .wide = true});
  }
  if (!never.empty()) {
    section->parts.emplace_back(Paragraph{"No I/O was issued late on " + never + "."});
  }
}

}  // namespace

void AddRuns(const DriveComparison& all, Page* page) {
  Section section{"runs", "Every run, and whether it was in time", {}};
  AddLateness(all, &section, page);
  DataTable runs = RunsTable(all);
  if (runs.rows() > 0) {
    page->tables.push_back(std::move(runs));
    section.parts.emplace_back(TableView{"runs"});
  }
  if (!section.parts.empty()) page->sections.push_back(std::move(section));
}

}  // namespace blktape
