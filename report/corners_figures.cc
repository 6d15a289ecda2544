#include "report/corners_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/corners_comparison.h"
#include "report/page.h"
#include "report/table_maker.h"

namespace blktape {
namespace {

// The words of a test's name: "4 KiB random", "read", "QD 1". Reads and writes share the first.
std::vector<std::string> WordsOf(const CornersComparison::Row& row) {
  std::vector<std::string> words = {row.condition};
  std::string_view rest = row.name;
  for (const std::string_view op : {" read", " write"}) {
    const size_t end = rest.find(", ");
    const std::string_view first = rest.substr(0, end);
    if (!first.ends_with(op)) continue;
    words.emplace_back(first.substr(0, first.size() - op.size()));
    rest.remove_prefix(first.size() - op.size() + 1);
    break;
  }
  while (true) {
    const size_t end = rest.find(", ");
    words.emplace_back(rest.substr(0, end));
    if (end == std::string_view::npos) return words;
    rest.remove_prefix(end + 2);
  }
}

std::string KeyOf(const char* what, size_t drive) { return fmt::format("{}_{}", what, drive + 1); }

using Test = MeasuredCorners::Test;

// IOPS and p99 by queue depth, a figure for each operation.
void AddDepths(const CornersComparison& all, const CornerGroupRows& group, Page* page,
               Section* section) {
  for (const bool read : {true, false}) {
    std::map<uint64_t, const CornersComparison::Row*> by_depth;
    for (const auto& [label, row] : group.rows) {
      for (const std::optional<Test>& test : row->tests) {
        if (test && test->queue_depth && test->read == read) by_depth[*test->queue_depth] = row;
      }
    }
    if (by_depth.size() < 2) continue;
    const std::string id = read ? "corners-depth-reads" : "corners-depth-writes";
    TableMaker table(id, read ? "Random reads by queue depth" : "Random writes by queue depth");
    table.Column("queue_depth", "queue depth", Unit::kCount);
    Chart chart{.kind = Chart::Kind::kLines,
                .x = "queue_depth",
                .x_axis = {"queue depth", Unit::kCount, true},
                .panels = {{"IOPS", Unit::kPerSecond}, {"p99, log scale", Unit::kDurationNs, true}},
                .height = 190};
    std::string alt;
    for (size_t i = 0; i < all.drives.size(); ++i) {
      const std::string& drive = all.drives[i].label;
      table.Column(KeyOf("iops", i), drive + ", IOPS", Unit::kPerSecond)
          .Column(KeyOf("p99_ns", i), drive + ", p99", Unit::kDurationNs);
      Chart::Series iops = SeriesOf(i, KeyOf("iops", i));
      iops.label = drive;
      Chart::Series p99 = SeriesOf(i, KeyOf("p99_ns", i));
      p99.label = drive;
      p99.panel = 1;
      chart.series.push_back(std::move(iops));
      chart.series.push_back(std::move(p99));
      const auto most = [&] {
        std::optional<double> highest;
        for (const auto& [depth, row] : by_depth) {
          if (row->tests[i] && row->tests[i]->iops) {
            highest = std::max(highest.value_or(0), *row->tests[i]->iops);
          }
        }
        return highest;
      }();
      alt += (alt.empty() ? "" : "; ") + drive + ": at most " +
             CellText(CellOf(most), Unit::kPerSecond);
    }
    for (const auto& [depth, row] : by_depth) {
      std::vector<Cell> cells = {depth};
      for (const std::optional<Test>& test : row->tests) {
        cells.push_back(test ? CellOf(test->iops) : Cell());
        cells.push_back(test ? CellOf(test->p99_ns) : Cell());
      }
      table.Row(std::move(cells));
    }
    page->tables.push_back(table.Take());
    section->parts.emplace_back(
        Figure{.id = id,
               .title = read ? "Random reads by queue depth" : "Random writes by queue depth",
               .subtitle = group.shared,
               .alt = alt,
               .table = id,
               .chart = std::move(chart)});
  }
}

std::string TitleOf(const std::string& group) {
  static const std::map<std::string, std::string> kTitles = {
      {"random", "Random, by alignment and data"},
      {"sequential", "Sequential"},
      {"incompressible", "Sequential, incompressible data"},
      {"compressible", "By how far data can be compressed"},
      {"fill", "By how full the drive is"},
      {"state", "New against used"},
      {"torture", "Torture and recovery"}};
  const auto found = kTitles.find(group);
  return found == kTitles.end() ? group : found->second;
}

std::optional<double> MegabytesOf(const std::optional<Test>& test) {
  if (!test || !test->bytes_per_second) return std::nullopt;
  return *test->bytes_per_second / 1e6;
}

// A group of bars for each test, a bar for each drive. MB/s are 10^6 bytes a second.
void AddBars(const CornersComparison& all, const CornerGroupRows& group, Page* page,
             Section* section) {
  const std::string id = "corners-" + group.name;
  TableMaker table(id, "Corners: " + group.name);
  table.Column("test", "test", Unit::kText);
  const size_t bars = group.rows.size() * all.drives.size();
  Chart chart{.x = "test",
              .panels = {{"MB/s", Unit::kNumber}},
              .horizontal = true,
              .height = static_cast<int>(70 + 14 * group.rows.size() + 18 * bars)};
  for (size_t i = 0; i < all.drives.size(); ++i) {
    table.Column(KeyOf("mb_per_second", i), all.drives[i].label + ", MB/s", Unit::kNumber);
    chart.series.push_back({.column = KeyOf("mb_per_second", i),
                            .colour = static_cast<int>(i),
                            .label = all.drives[i].label});
  }
  std::string alt;
  for (const auto& [label, row] : group.rows) {
    std::vector<Cell> cells = {label.empty() ? group.name : label};
    for (const std::optional<Test>& test : row->tests) {
      cells.push_back(CellOf(MegabytesOf(test)));
    }
    table.Row(std::move(cells));
  }
  for (size_t i = 0; i < all.drives.size(); ++i) {
    const std::optional<double> rate = MegabytesOf(group.rows.front().second->tests[i]);
    alt += (alt.empty() ? group.rows.front().first + ": " : "; ") + all.drives[i].label + " " +
           (rate ? CellText(*rate, Unit::kNumber) + " MB/s" : "not known");
  }
  page->tables.push_back(table.Take());
  section->parts.emplace_back(Figure{.id = id,
                                     .title = TitleOf(group.name),
                                     .subtitle = group.shared,
                                     .alt = alt,
                                     .table = id,
                                     .chart = std::move(chart),
                                     .wide = true});
}

// What the drive does over the time of the tests of a group, one after the other.
void AddTorture(const CornersComparison& all, const CornerGroupRows& group, Page* page,
                Section* section) {
  TableMaker table("corners-torture-series", "Torture over time");
  table.Column("drive", "drive", Unit::kText)
      .Column("test", "test", Unit::kText)
      .Column("from_ns", "from", Unit::kDurationNs)
      .Column("bytes_per_second", "rate", Unit::kBytesPerSecond);
  Chart chart{.kind = Chart::Kind::kLines,
              .x = "from_ns",
              .x_axis = {"time of writing, pauses left out", Unit::kDurationNs},
              .panels = {{"rate", Unit::kBytesPerSecond}},
              .zoom = true,
              .height = 240};
  std::string alt;
  for (size_t i = 0; i < all.drives.size(); ++i) {
    const size_t first_row = table.rows();
    double from_ns = 0;
    for (const auto& [label, row] : group.rows) {
      if (!row->tests[i]) continue;
      for (const double bytes : row->tests[i]->series_bytes) {
        table.Row(
            {all.drives[i].label, label, from_ns, bytes / row->tests[i]->series_step_ns * 1e9});
        from_ns += row->tests[i]->series_step_ns;
      }
    }
    if (table.rows() < first_row + 2) continue;
    Chart::Series series = SeriesOf(i, "bytes_per_second");
    series.first_row = first_row;
    series.end_row = table.rows();
    series.label = all.drives[i].label;
    series.step = true;
    chart.series.push_back(std::move(series));
    alt += (alt.empty() ? "" : "; ") + all.drives[i].label + " for " +
           CellText(from_ns, Unit::kDurationNs);
  }
  if (chart.series.empty()) return;
  table.MostShown(400);
  page->tables.push_back(table.Take());
  section->parts.emplace_back(Figure{.id = "corners-torture-series",
                                     .title = "Torture over time",
                                     .subtitle = group.shared,
                                     .alt = "the rate of " + alt,
                                     .table = "corners-torture-series",
                                     .chart = std::move(chart),
                                     .wide = true});
}

}  // namespace

std::vector<CornerGroupRows> GroupsOf(const CornersComparison& all) {
  std::vector<CornerGroupRows> groups;
  for (const CornersComparison::Row& row : all.rows) {
    if (groups.empty() || groups.back().name != row.group) groups.push_back({row.group, "", {}});
    groups.back().rows.emplace_back("", &row);
  }
  const auto append = [](std::string* text, const std::string& word) {
    if (!word.empty()) *text += (text->empty() ? "" : ", ") + word;
  };
  for (CornerGroupRows& group : groups) {
    std::vector<std::vector<std::string>> words;
    for (const auto& [label, row] : group.rows) words.push_back(WordsOf(*row));
    const std::vector<std::string> of_first = words.front();
    for (const std::string& word : of_first) {
      const bool in_all = std::all_of(words.begin(), words.end(), [&word](const auto& one) {
        return std::find(one.begin(), one.end(), word) != one.end();
      });
      if (in_all && words.size() > 1) append(&group.shared, word);
      for (auto& one : words) {
        if (in_all && words.size() > 1) one.erase(std::find(one.begin(), one.end(), word));
      }
    }
    for (size_t i = 0; i < words.size(); ++i) {
      for (const std::string& word : words[i]) append(&group.rows[i].first, word);
    }
  }
  return groups;
}

void AddCornersFigures(const CornersComparison& all, Page* page, Section* section) {
  // A group's tests stand together but where drives have others.
  std::vector<std::string> drawn;
  for (const CornerGroupRows& group : GroupsOf(all)) {
    if (std::find(drawn.begin(), drawn.end(), group.name) != drawn.end()) continue;
    drawn.push_back(group.name);
    if (group.name == "depth") {
      AddDepths(all, group, page, section);
    } else {
      AddBars(all, group, page, section);
    }
    if (group.name == "torture") AddTorture(all, group, page, section);
  }
}

}  // namespace blktape
