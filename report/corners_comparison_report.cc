#include "report/corners_comparison_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/quantity.h"
#include "base/text_layout.h"
#include "report/comparison_words.h"
#include "report/corners_figures.h"
#include "report/markdown.h"
#include "report/table_maker.h"

namespace blktape {
namespace {

constexpr size_t kNarrow = 60;  // columns below which a drive has a line of its own

std::string Megabytes(const std::optional<MeasuredCorners::Test>& test) {
  if (!test || !test->bytes_per_second) return "-";
  return FormatNumber(*test->bytes_per_second / 1e6);
}

std::string Iops(const std::optional<MeasuredCorners::Test>& test) {
  if (!test || !test->iops) return "-";
  return FormatCount(static_cast<uint64_t>(std::llround(*test->iops)));
}

// Within so many columns; simulated drives differ in their last words.
std::string ShortName(const std::string& label, size_t columns) {
  constexpr std::string_view kSimulated = "simulated drive ";
  return Plain(label.starts_with(kSimulated) ? "sim:" + label.substr(kSimulated.size()) : label,
               columns);
}

std::string Times(const std::optional<double>& ratio) {
  return ratio ? FormatNumber(*ratio) + "x" : std::string("-");
}

std::vector<Sentence> CornersRemarks(const CornersComparison& all) {
  std::vector<Sentence> remarks;
  const bool quick = std::any_of(all.drives.begin(), all.drives.end(),
                                 [](const auto& drive) { return drive.corners.quick; });
  if (all.mixed_lengths()) {
    remarks.push_back(
        {{{"Some corners are of --quick, others are not: their tests differ."}}, true});
  } else if (quick) {
    remarks.push_back({{{"QUICK: times and spans of the corners are shortened."}}, true});
  }
  for (const ComparedCorners& drive : all.drives) {
    if (!drive.corners.compresses()) continue;
    remarks.push_back({{DriveName(drive.label),
                        {" writes a repeated byte "},
                        {TimesDigits(*drive.corners.repeated_over_random) + " times", true},
                        {" as fast as random data: it compresses or deduplicates, and figures of "
                         "repeated data flatter it."}},
                       /*bad=*/true});
  }
  return remarks;
}

}  // namespace

DataTable CornersTable(const CornersComparison& all) {
  DataTable table{"corners",
                  "Corners",
                  {{"group", "group", Unit::kText, {}},
                   {"condition", "condition", Unit::kText, {}},
                   {"test", "test", Unit::kText, {}}}};
  for (size_t i = 0; i < all.drives.size(); ++i) {
    const std::string& label = all.drives[i].label;
    table.columns.push_back(
        {fmt::format("mb_per_second_{}", i + 1), label + ", MB/s", Unit::kNumber, {}});
    table.columns.push_back({fmt::format("iops_{}", i + 1), label + ", IOPS", Unit::kCount, {}});
    table.columns.push_back(
        {fmt::format("p99_ns_{}", i + 1), label + ", p99", Unit::kDurationNs, {}});
    table.columns.push_back(
        {fmt::format("ratio_{}", i + 1), label + ", times the first", Unit::kNumber, {}});
  }
  for (const CornersComparison::Row& row : all.rows) {
    size_t c = 0;
    for (const std::string& text : {row.group, row.condition, row.name}) {
      table.columns[c++].cells.emplace_back(text);
    }
    for (size_t i = 0; i < all.drives.size(); ++i) {
      const MeasuredCorners::Test test = row.tests[i].value_or(MeasuredCorners::Test{});
      std::optional<double> megabytes = test.bytes_per_second;
      if (megabytes) *megabytes /= 1e6;
      for (const auto& value : {megabytes, test.iops, test.p99_ns, row.ratios[i]}) {
        table.columns[c++].cells.push_back(CellOf(value));
      }
    }
  }
  return table;
}

std::string CornersText(const CornersComparison& all, const TextLook& look) {
  std::string text = Wrapped("", "  ",
                             all.drives.size() > 1
                                 ? "Corners: MB/s (10^6 bytes a second), and how many times those "
                                   "of the first drive"
                                 : "Corners",
                             look.columns);
  const bool narrow = look.columns < kNarrow || all.drives.size() > 3;
  for (const CornerGroupRows& group : GroupsOf(all)) {
    text += "\n" + Wrapped(group.name + ": ", "  ", Plain(group.shared, 1'000), look.columns);
    if (narrow) {
      TextTable table({{"", true}, {"MB/s"}, {"IOPS", false, 6}, {"times", false, 8}});
      for (const auto& [label, row] : group.rows) {
        table.Row({Plain(label, look.columns > 4 ? look.columns - 4 : 36), "", "", ""});
        for (size_t i = 0; i < all.drives.size(); ++i) {
          table.Row({"  " + ShortName(all.drives[i].label, 18), Megabytes(row->tests[i]),
                     Iops(row->tests[i]), i == 0 ? "" : Times(row->ratios[i])});
        }
      }
      text += table.Text(look);
      continue;
    }
    std::vector<TextTable::Column> columns = {{"", true}};
    for (size_t i = 0; i < all.drives.size(); ++i) {
      columns.push_back({ShortName(all.drives[i].label, 14)});
      if (i > 0) columns.push_back({"", false, 8});
    }
    TextTable table(columns);
    for (const auto& [label, row] : group.rows) {
      std::vector<std::string> cells = {Plain(label, 48)};
      for (size_t i = 0; i < all.drives.size(); ++i) {
        cells.push_back(Megabytes(row->tests[i]));
        if (i > 0) cells.push_back(Times(row->ratios[i]));
      }
      table.Row(std::move(cells));
    }
    text += table.Text(look);
  }
  const std::string remarks = SentenceLines(CornersRemarks(all), look);
  return remarks.empty() ? text : text + "\n" + remarks;
}

Json CornersJson(const CornersComparison& all) {
  Json drives = Json::array();
  for (const ComparedCorners& drive : all.drives) {
    drives.push_back({{"label", drive.label},
                      {"source", drive.source},
                      {"quick", drive.corners.quick},
                      {"repeated_over_random", OrNull(drive.corners.repeated_over_random)}});
  }
  Json rows = Json::array();
  for (const CornersComparison::Row& row : all.rows) {
    Json tests = Json::array();
    for (size_t i = 0; i < all.drives.size(); ++i) {
      const auto& test = row.tests[i];
      tests.push_back(test ? Json{{"bytes_per_second", OrNull(test->bytes_per_second)},
                                  {"iops", OrNull(test->iops)},
                                  {"p99_ns", OrNull(test->p99_ns)},
                                  {"ratio", OrNull(row.ratios[i])}}
                           : Json(nullptr));
    }
    rows.push_back({{"group", row.group},
                    {"condition", row.condition},
                    {"name", row.name},
                    {"drives", std::move(tests)}});
  }
  return {{"sentences", SentencesJson(CornersRemarks(all))},
          {"drives", std::move(drives)},
          {"tests", std::move(rows)}};
}

std::string CornersMarkdown(const CornersComparison& all) {
  return SentencesMarkdown(CornersRemarks(all)) + MarkdownTable(CornersTable(all));
}

void AddCorners(const CornersComparison& all, Page* page) {
  for (const Sentence& remark : CornersRemarks(all)) page->verdict.push_back(remark);
  page->tables.push_back(CornersTable(all));
  Section section{"corners", "Corners: the classic synthetic tests", {}};
  AddCornersFigures(all, page, &section);
  section.parts.emplace_back(TableView{"corners"});
  // Evidence comes before its conditions.
  const auto conditions = std::find_if(page->sections.begin(), page->sections.end(),
                                       [](const Section& one) { return one.id == "conditions"; });
  page->sections.insert(conditions, std::move(section));
}

}  // namespace blktape
