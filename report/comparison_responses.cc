#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/drive_comparison.h"
#include "analysis/foreground.h"
#include "analysis/score_evidence.h"
#include "report/comparison_parts.h"
#include "report/page.h"
#include "report/table_maker.h"

namespace blktape {
namespace {

struct ClassWords {
  const char* id;
  const char* title;
  const char* what;
};
constexpr std::array<ClassWords, kWaitClasses> kClasses = {
    {{"response-small-reads", "Small reads", "reads up to 16 KiB"},
     {"response-large-reads", "Large reads", "reads over 16 KiB"},
     {"response-saves", "Saves", "sync writes and flushes"}}};

std::string KeyOf(size_t drive) { return fmt::format("ns_{}", drive + 1); }

bool Tells(const ScoreEvidence::Percentiles& percentiles) {
  return std::any_of(percentiles.ns.begin(), percentiles.ns.end(),
                     [](const auto& ns) { return ns && *ns > 0; });
}

std::string Text(const ScoreEvidence::Percentiles& percentiles, uint32_t ppm) {
  for (size_t p = 0; p < percentiles.ns.size(); ++p) {
    if (kShownPercentilesPpm[p] == ppm && percentiles.ns[p]) {
      return CellText(*percentiles.ns[p], Unit::kDurationNs);
    }
  }
  return "not known";
}

void AddMeans(const DriveComparison& all, Section* section, Page* page) {
  TableMaker table("responses", "Mean response, and the mean of the worst hundredth");
  table.Column("drive", "drive", Unit::kText);
  for (size_t c = 0; c < kWaitClasses; ++c) {
    const std::string key = kWaitClassKeys[c];
    table.Column(key + "_mean_ns", kClasses[c].what, Unit::kDurationNs)
        .Column(key + "_worst_1_percent_ns", "worst 1 %", Unit::kDurationNs);
  }
  for (const size_t i : ByPlace(all)) {
    std::vector<Cell> row = {LabelOf(all.drives[i])};
    for (const auto& response : all.drives[i].score.evidence.mean_responses) {
      row.push_back(CellOf(response.mean_ns));
      row.push_back(CellOf(response.worst_1_percent_ns));
    }
    table.Row(std::move(row));
  }
  page->tables.push_back(table.Take());
  section->parts.emplace_back(TableView{"responses"});
}

}  // namespace

void AddResponses(const DriveComparison& all, Page* page) {
  Section section{"responses", "How long one waits for an I/O", {}};
  for (size_t c = 0; c < kWaitClasses; ++c) {
    const auto of = [&](size_t i) -> const ScoreEvidence::Percentiles& {
      return all.drives[i].score.evidence.responses[c];
    };
    Chart chart{.kind = Chart::Kind::kLines,
                .x = "one_in",
                .x_axis = {"percentile, log scale of what is beyond it", Unit::kOneIn, true},
                .panels = {{"response, log scale", Unit::kDurationNs, true}},
                .height = 280};
    TableMaker table(kClasses[c].id, std::string("Response of ") + kClasses[c].what);
    table.Column("one_in", "percentile", Unit::kOneIn);
    std::string alt;
    for (size_t i = 0; i < all.drives.size(); ++i) {
      if (!Tells(of(i))) continue;
      table.Column(KeyOf(i), LabelOf(all.drives[i]), Unit::kDurationNs);
      chart.series.push_back(SeriesOf(i, KeyOf(i)));
      alt += (alt.empty() ? "" : "; ") + all.drives[i].label + ": half below " +
             Text(of(i), 500'000) + ", 99 % below " + Text(of(i), 990'000) + ", 99.9 % below " +
             Text(of(i), 999'000);
    }
    if (chart.series.empty()) continue;
    for (size_t p = 0; p < kShownPercentilesPpm.size(); ++p) {
      std::vector<Cell> row = {1e6 / (1e6 - kShownPercentilesPpm[p])};
      bool known = false;
      for (size_t i = 0; i < all.drives.size(); ++i) {
        if (!Tells(of(i))) continue;
        row.push_back(CellOf(of(i).ns[p]));
        known = known || of(i).ns[p];
      }
      if (known) table.Row(std::move(row));
    }
    page->tables.push_back(table.Take());
    section.parts.emplace_back(
        Figure{.id = kClasses[c].id,
               .title = kClasses[c].title,
               .subtitle = std::string(kClasses[c].what) +
                           ": from due to done, without the host's lateness; all cycles together; "
                           "lower is better",
               .alt = alt,
               .table = kClasses[c].id,
               .chart = std::move(chart)});
  }
  // Of an odd number the last one is as wide as two.
  if (section.parts.size() % 2 == 1) std::get<Figure>(section.parts.back()).wide = true;
  const bool means =
      std::any_of(all.drives.begin(), all.drives.end(), [](const ComparedDrive& drive) {
        const auto& responses = drive.score.evidence.mean_responses;
        return std::any_of(responses.begin(), responses.end(),
                           [](const auto& one) { return one.mean_ns.has_value(); });
      });
  if (means) AddMeans(all, &section, page);
  if (!section.parts.empty()) page->sections.push_back(std::move(section));
}

}  // namespace blktape
