#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/drive_comparison.h"
#include "analysis/measured_score.h"
#include "analysis/score.h"
#include "base/quantity.h"
#include "base/version.h"
#include "report/comparison_parts.h"
#include "report/comparison_report.h"
#include "report/comparison_words.h"
#include "report/page.h"
#include "report/table_maker.h"

namespace blktape {
namespace {

// Of more drives than this the page quotes the fastest against each other one alone.
constexpr size_t kQuotedPairs = 6;

std::string WaitText(const MeasuredScore& score) {
  return CellText(CellOf(score.storage_wait_ns), Unit::kDurationNs);
}

// "For this work one waits 789 ms for A, 10.2 s for B."
std::optional<Sentence> WaitSentence(const DriveComparison& all) {
  Sentence sentence{{{"Waiting for storage in this work: "}}};
  size_t told = 0;
  for (const size_t i : ByPlace(all)) {
    const ComparedDrive& drive = all.drives[i];
    if (!drive.score.valid || !drive.score.storage_wait_ns) continue;
    if (told++ > 0) sentence.words.push_back({", "});
    sentence.words.push_back({WaitText(drive.score), true});
    sentence.words.push_back({" on "});
    sentence.words.push_back({drive.label, false, true});
  }
  sentence.words.push_back({"."});
  if (told == 0) return std::nullopt;
  return sentence;
}

// What to quote: of few drives all, of many what is said of the fastest; that an invalid drive gets
// no verdict is said once; then what makes it doubtful.
std::vector<Sentence> PageVerdict(const DriveComparison& all) {
  const size_t fastest = ByPlace(all).front();
  const bool many = all.pairs.size() > kQuotedPairs;
  size_t left_out = 0;
  const std::vector<Sentence> told = VerdictFor(all, [&](const DrivePair& pair) {
    if (pair.obstacle == Obstacle::kInvalid) return false;
    const bool quoted =
        !many || pair.shows_state() || pair.first == fastest || pair.second == fastest;
    left_out += quoted ? 0 : 1;
    return quoted;
  });
  std::vector<Sentence> verdict;
  for (const bool bad : {false, true}) {
    for (const Sentence& sentence : told) {
      if (sentence.bad == bad) verdict.push_back(sentence);
    }
    if (bad) break;
    if (std::optional<Sentence> wait = WaitSentence(all)) verdict.push_back(*std::move(wait));
    if (left_out > 0) {
      verdict.push_back(
          {{{FormatCounted(left_out, "more verdict") + " in the table of every two drives."}}});
    }
  }
  return verdict;
}

std::string Subtitle(const DriveComparison& all) {
  const MeasuredScore& first = all.drives.front().score;
  std::set<std::string> traces;
  std::set<std::string> states;
  std::set<size_t> cycles;
  for (const ComparedDrive& drive : all.drives) {
    traces.insert(drive.score.trace_hash + TraceOf(drive.score));
    states.insert(drive.score.state);
    cycles.insert(drive.score.cycles.size());
  }
  std::string text;
  if (traces.size() > 1) {
    text = "scored for different work";
  } else {
    text = "for the work in " + TraceOf(first);
    if (first.recording_ns > 0) {
      text += ", " + FormatDurationNs(first.recording_ns) + " as it was recorded";
    }
    uint64_t foreground = 0;
    for (const auto& segment : first.evidence.segments) foreground += segment.foreground;
    if (foreground > 0)
      text += ", " + FormatCounted(foreground, "I/O") + " that somebody waits for";
  }
  text += " · state ";
  bool more = false;
  for (const std::string& state : states) {
    text += (std::exchange(more, true) ? ", " : "") + state;
  }
  text += fmt::format(" · {} {}", *cycles.begin(), *cycles.rbegin() == 1 ? "cycle" : "cycles");
  if (cycles.size() > 1) {
    text.insert(text.rfind(' '), fmt::format(" to {}", *cycles.rbegin()));
  }
  return text;
}

// "place 2, a tie": what a score's bar says beside its value.
std::string NoteOf(const DriveComparison& all, size_t i) {
  if (!all.drives[i].score.valid) return "INVALID";
  if (!all.places[i]) return "";
  const bool tie = std::count(all.places.begin(), all.places.end(), all.places[i]) > 1;
  return fmt::format("place {}{}", *all.places[i], tie ? ", a tie" : "");
}

// What the bars are drawn from: by place, invalid scores last and marked.
DataTable BarsTable(const DriveComparison& all, const std::vector<size_t>& order) {
  TableMaker table("score", "Score and storage wait");
  table.Column("drive", "drive", Unit::kText)
      .Column("place", "place", Unit::kCount)
      .Column("score", "score", Unit::kNumber)
      .Column("ci_low", "from", Unit::kNumber)
      .Column("ci_high", "to", Unit::kNumber)
      .Column("storage_wait_ns", "storage wait", Unit::kDurationNs)
      .Column("wait_least_ns", "least of a cycle", Unit::kDurationNs)
      .Column("wait_most_ns", "most of a cycle", Unit::kDurationNs)
      .Column("valid", "valid", Unit::kText)
      .Column("note", "note", Unit::kText);
  for (const size_t i : order) {
    const MeasuredScore& score = all.drives[i].score;
    const std::vector<double>& waits = score.evidence.waits_ns;
    std::optional<double> least;
    std::optional<double> most;
    if (!waits.empty()) {
      const auto [low, high] = std::minmax_element(waits.begin(), waits.end());
      least = *low;
      most = *high;
    }
    table.Row({LabelOf(all.drives[i]), CellOf(all.places[i]), CellOf(score.score),
               CellOf(score.ci_low), CellOf(score.ci_high), CellOf(score.storage_wait_ns),
               CellOf(least), CellOf(most), std::string(score.valid ? "yes" : "no"),
               NoteOf(all, i)});
  }
  return table.Take();
}

Chart DriveBars(const std::vector<size_t>& order, Chart::Axis axis, Chart::Series series) {
  Chart chart{.x = "drive",
              .panels = {std::move(axis)},
              .series = {std::move(series)},
              .horizontal = true,
              .colour_by_row = true,
              .valid = "valid",
              .values = true,
              .height = static_cast<int>(60 + 40 * std::max<size_t>(order.size(), 3))};
  for (const size_t i : order) chart.row_colours.push_back(static_cast<int>(i));
  return chart;
}

// "1. A, B tie" in words.
std::string Places(const DriveComparison& all, const std::vector<size_t>& order) {
  std::string text;
  for (const size_t i : order) {
    if (!all.places[i]) continue;
    const bool shared = std::count(all.places.begin(), all.places.end(), all.places[i]) > 1;
    text += (text.empty() ? "" : ", ") + all.drives[i].label + " is " +
            (shared ? "tied in place " : "in place ") + std::to_string(*all.places[i]);
  }
  return text;
}

}  // namespace

std::string LabelOf(const ComparedDrive& drive) {
  return drive.score.valid ? drive.label : "INVALID: " + drive.label;
}

std::vector<size_t> ByPlace(const DriveComparison& all) {
  std::vector<size_t> order(all.drives.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto key = [&all](size_t i) {
    const MeasuredScore& score = all.drives[i].score;
    return std::pair(!score.valid, -score.score.value_or(0));
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const auto place = [&](size_t i) { return all.places[i].value_or(SIZE_MAX); };
    return place(a) < place(b);
  });
  return order;
}

void AddScores(const DriveComparison& all, Page* page) {
  const std::vector<size_t> order = ByPlace(all);
  page->tables.push_back(BarsTable(all, order));
  page->tables.push_back(PairsTable(all));
  std::string scores;
  std::string waits;
  for (const size_t i : order) {
    const ComparedDrive& drive = all.drives[i];
    scores += (scores.empty() ? "" : "; ") + drive.label + ": " + ScoreDigits(drive.score.score) +
              ", interval " + IntervalText(drive.score.ci_low, drive.score.ci_high) +
              (drive.score.valid ? "" : ", INVALID");
    waits += (waits.empty() ? "" : "; ") + drive.label + ": " +
             (drive.score.storage_wait_ns ? WaitText(drive.score) : "not known");
  }
  const std::string places = Places(all, order);
  Chart score = DriveBars(order, {"score", Unit::kNumber}, {.column = "score"});
  score.series.front().low = "ci_low";
  score.series.front().high = "ci_high";
  score.marks = {{1000, 1000, "reference"}};
  score.note = "note";
  Figure scores_figure{.id = "score-bars",
                       .title = "Score",
                       .subtitle =
                           "longer is faster; the reference drive has 1000; lines are 95 % "
                           "intervals, run to run",
                       .alt = scores + (places.empty() ? "" : "; " + places),
                       .table = "score",
                       .chart = std::move(score)};
  Chart wait = DriveBars(order, {"storage wait", Unit::kDurationNs}, {.column = "storage_wait_ns"});
  wait.series.front().low = "wait_least_ns";
  wait.series.front().high = "wait_most_ns";
  page->sections.push_back(
      {"scores",
       "How fast",
       {std::move(scores_figure),
        Figure{.id = "wait-bars",
               .title = "Waiting for storage",
               .subtitle = "time in which somebody waited in this work; shorter is better; mean "
                           "over cycles, lines from the least to the most of a cycle",
               .alt = waits,
               .table = "score",
               .chart = std::move(wait)},
        TableView{"pairs"}}});
}

Page ComparisonPage(const DriveComparison& comparison) {
  Page page{.title = fmt::format("{} drives compared", comparison.drives.size()),
            .subtitle = Subtitle(comparison)};
  page.verdict = PageVerdict(comparison);
  AddScores(comparison, &page);
  AddStates(comparison, &page);
  AddWhere(comparison, &page);
  AddResponses(comparison, &page);
  AddOverTime(comparison, &page);
  AddConditions(comparison, &page);
  AddRuns(comparison, &page);
  AddLeftOut(comparison, &page);
  page.tables.push_back(DrivesTable(comparison));
  page.tables.back().columns.pop_back();  // where its report lies: pages are published
  page.sections.push_back({"figures", "Figures", {TableView{"drives"}}});
  page.footer = fmt::format(
      "blktape {}, score version {}. docs/score.md defines each figure. This file needs no network "
      "and asks nobody for anything.",
      kVersion, kScoreVersion);
  return page;
}

}  // namespace blktape
