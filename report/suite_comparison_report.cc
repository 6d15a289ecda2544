#include "report/suite_comparison_report.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "analysis/drive_comparison.h"
#include "analysis/measured_score.h"
#include "base/json.h"
#include "base/quantity.h"
#include "base/text_layout.h"
#include "report/comparison_words.h"
#include "report/markdown.h"
#include "report/table_maker.h"

namespace blktape {
namespace {

const char* ObstacleOf(const SuitePair& pair) {
  switch (pair.obstacle) {
    case Obstacle::kOtherTrace:
      return "their suites hold other traces or weights";
    case Obstacle::kOtherRule:
      return "they were measured by different rules";
    default:
      return ObstacleText(pair.obstacle);
  }
}

Sentence VerdictOf(const SuiteComparison& all, const SuitePair& pair) {
  const Sentence::Words first = DriveName(all.drives[pair.first].label);
  const Sentence::Words second = DriveName(all.drives[pair.second].label);
  const SuiteScore& suite = all.drives[pair.first].suite;
  const Sentence::Words name{suite.name, false, true};
  const Comparison& told = pair.comparison;
  if (pair.obstacle != Obstacle::kNone) {
    Sentence sentence{{{"No verdict on "}, first, {" and "}, second, {" for the suite: "}}, true};
    if (pair.trace) {
      sentence.words.push_back({TraceOf(suite.traces[*pair.trace].score), false, true});
      sentence.words.push_back({": "});
    }
    sentence.words.push_back({std::string(ObstacleOf(pair)) + "."});
    return sentence;
  }
  return FasterSentence(first, second, told, {{" for the suite "}, name});
}

// What the bars are drawn from: an invalid one looks invalid there too.
DataTable SuiteBarsTable(const SuiteComparison& all) {
  DataTable table{"suite",
                  "Score of the suite",
                  {{"drive", "drive", Unit::kText, {}},
                   {"score", "score", Unit::kNumber, {}},
                   {"ci_low", "from", Unit::kNumber, {}},
                   {"ci_high", "to", Unit::kNumber, {}}}};
  for (const ComparedSuite& drive : all.drives) {
    const auto composite = drive.suite.composite();
    table.columns[0].cells.emplace_back(drive.suite.valid() ? drive.label
                                                            : "INVALID: " + drive.label);
    table.columns[1].cells.push_back(composite ? Cell(composite->score) : Cell());
    table.columns[2].cells.push_back(composite ? CellOf(composite->ci_low) : Cell());
    table.columns[3].cells.push_back(composite ? CellOf(composite->ci_high) : Cell());
  }
  return table;
}

}  // namespace

DataTable SuiteTable(const SuiteComparison& all) {
  DataTable table{"suites",
                  "Suite and traces",
                  {{"drive", "drive", Unit::kText, {}},
                   {"suite", "suite", Unit::kText, {}},
                   {"trace", "trace", Unit::kText, {}},
                   {"weight", "weight", Unit::kNumber, {}},
                   {"place", "place", Unit::kCount, {}},
                   {"score", "score", Unit::kNumber, {}},
                   {"ci_low", "from", Unit::kNumber, {}},
                   {"ci_high", "to", Unit::kNumber, {}},
                   {"storage_wait_ns", "storage wait", Unit::kDurationNs, {}},
                   {"valid", "valid", Unit::kText, {}}}};
  const auto add = [&table](const std::vector<Cell>& row) {
    for (size_t c = 0; c < row.size(); ++c) table.columns[c].cells.push_back(row[c]);
  };
  const auto place = [](const std::optional<size_t>& one) {
    return one ? Cell(uint64_t{*one}) : Cell();
  };
  for (size_t i = 0; i < all.drives.size(); ++i) {
    const ComparedSuite& drive = all.drives[i];
    const SuiteScore& suite = drive.suite;
    const auto composite = suite.composite();
    double weights = 0;
    for (const SuiteScore::Trace& trace : suite.traces) weights += trace.weight;
    add({drive.label, suite.name, std::string(), weights, place(all.places[i]),
         composite ? Cell(composite->score) : Cell(),
         composite ? CellOf(composite->ci_low) : Cell(),
         composite ? CellOf(composite->ci_high) : Cell(), Cell(),
         std::string(suite.valid() ? "yes" : "no")});
    for (size_t t = 0; t < suite.traces.size(); ++t) {
      const MeasuredScore& score = suite.traces[t].score;
      add({drive.label, suite.name, TraceOf(suite.traces[t].score), suite.traces[t].weight,
           all.traces.empty() ? Cell() : place(all.traces[t].places[i]), CellOf(score.score),
           CellOf(score.ci_low), CellOf(score.ci_high), CellOf(score.storage_wait_ns),
           std::string(score.valid ? "yes" : "no")});
    }
  }
  return table;
}

std::vector<Sentence> SuiteVerdict(const SuiteComparison& comparison) {
  std::vector<Sentence> sentences;
  for (const Verdict verdict : {Verdict::kFirstFaster, Verdict::kTie}) {
    for (const SuitePair& pair : comparison.pairs) {
      if (pair.obstacle == Obstacle::kNone && pair.comparison.verdict == verdict) {
        sentences.push_back(VerdictOf(comparison, pair));
      }
    }
  }
  for (const ComparedSuite& drive : comparison.drives) {
    for (const SuiteScore::Trace& trace : drive.suite.traces) {
      const MeasuredScore& score = trace.score;
      if (score.valid) continue;
      sentences.push_back(
          {{{"INVALID: the score of "},
            DriveName(drive.label),
            {" for "},
            {score.trace, false, true},
            {score.invalid_reasons.empty() ? "." : ": "},
            {score.invalid_reasons.empty() ? "" : score.invalid_reasons.front(), false, true}},
           /*bad=*/true});
    }
  }
  for (const SuitePair& pair : comparison.pairs) {
    if (pair.obstacle != Obstacle::kNone) sentences.push_back(VerdictOf(comparison, pair));
  }
  for (const ComparedSuite& drive : comparison.drives) {
    if (drive.suite.interval_too_wide()) {
      sentences.push_back({{{"TOO WIDE: the interval of "},
                            DriveName(drive.label),
                            {" for the suite is no ground to choose a drive by."}},
                           /*bad=*/true});
    }
  }
  return sentences;
}

std::string SuiteText(const SuiteComparison& all, const TextLook& look) {
  std::string text = SentenceLines(SuiteVerdict(all), look);
  TextTable drives({{"drive", true},
                    {"place", false, 5},
                    {"suite score"},
                    {"95 % interval", false, 8},
                    {"valid", true, 7}});
  for (size_t i = 0; i < all.drives.size(); ++i) {
    const SuiteScore& suite = all.drives[i].suite;
    const auto composite = suite.composite();
    drives.Row({Plain(all.drives[i].label, kLabelColumns),
                all.places[i] ? std::to_string(*all.places[i]) : "-",
                composite ? ScoreDigits(composite->score) : "none",
                composite ? IntervalText(composite->ci_low, composite->ci_high) : "none",
                suite.valid() ? "yes" : "INVALID"});
  }
  text += "\n" + drives.Text(look) + "\n";
  TextTable traces({{"trace and drive", true},
                    {"weight", false, 4},
                    {"score"},
                    {"95 % interval", false, 8},
                    {"storage wait", false, 7},
                    {"valid", true, 6}});
  const SuiteScore& first = all.drives.front().suite;
  for (size_t t = 0; t < first.traces.size() && !all.traces.empty(); ++t) {
    traces.Row({Plain(TraceOf(first.traces[t].score), kLabelColumns),
                FormatNumber(first.traces[t].weight), "", "", "", ""});
    for (const ComparedSuite& drive : all.drives) {
      const MeasuredScore& score = drive.suite.traces[t].score;
      traces.Row({"  " + Plain(drive.label, kLabelColumns - 2), "", ScoreDigits(score.score),
                  IntervalText(score.ci_low, score.ci_high),
                  score.storage_wait_ns ? CellText(*score.storage_wait_ns, Unit::kDurationNs) : "-",
                  score.valid ? "yes" : "INVALID"});
    }
  }
  if (!traces.empty()) text += traces.Text(look) + "\n";
  text += Wrapped("Suite      ", "           ",
                  Plain(first.name, kLabelColumns) +
                      ": the geometric mean of its traces' scores, by weight; 1000 is the "
                      "reference drive",
                  look.columns);
  for (const ComparedSuite& drive : all.drives) {
    // Its traces go to the same targets.
    std::set<std::string> said;
    for (const SuiteScore::Trace& trace : drive.suite.traces) {
      for (const std::string& note : trace.score.evidence.notes) {
        if (!said.insert(note).second) continue;
        text +=
            Wrapped("Note       ", "           ",
                    Plain(drive.label, kLabelColumns) + ": " + Plain(note, 1'000), look.columns);
      }
    }
  }
  return text;
}

Json SuitesJson(const SuiteComparison& all) {
  Json drives = Json::array();
  for (size_t i = 0; i < all.drives.size(); ++i) {
    const ComparedSuite& drive = all.drives[i];
    const SuiteScore& suite = drive.suite;
    const auto composite = suite.composite();
    Json traces = Json::array();
    for (size_t t = 0; t < suite.traces.size(); ++t) {
      const MeasuredScore& score = suite.traces[t].score;
      const auto& places = all.traces.empty() ? all.places : all.traces[t].places;
      traces.push_back({{"trace", score.trace},
                        {"trace_hash", score.trace_hash},
                        {"piece", score.piece},
                        {"weight", suite.traces[t].weight},
                        {"share", suite.share(t)},
                        {"place", all.traces.empty() ? Json(nullptr) : OrNull(places[i])},
                        {"score", OrNull(score.score)},
                        {"ci_low", OrNull(score.ci_low)},
                        {"ci_high", OrNull(score.ci_high)},
                        {"storage_wait_ns", OrNull(score.storage_wait_ns)},
                        {"cycles", score.cycles.size()},
                        {"state", score.state},
                        {"rule", score.rule},
                        {"valid", score.valid},
                        {"invalid_reasons", score.invalid_reasons}});
    }
    drives.push_back(
        {{"label", drive.label},
         {"source", drive.source},
         {"suite", suite.name},
         {"place", OrNull(all.places[i])},
         {"score", composite ? Json(composite->score) : Json(nullptr)},
         {"ci_low", composite ? OrNull(composite->ci_low) : Json(nullptr)},
         {"ci_high", composite ? OrNull(composite->ci_high) : Json(nullptr)},
         {"interval_too_wide",
          composite && composite->ci_low ? Json(suite.interval_too_wide()) : Json(nullptr)},
         {"valid", suite.valid()},
         {"traces", std::move(traces)}});
  }
  Json pairs = Json::array();
  for (const SuitePair& pair : all.pairs) {
    pairs.push_back(PairJson(pair.first, pair.second, pair.obstacle, pair.comparison,
                             pair.obstacle == Obstacle::kNone));
  }
  return {{"sentences", SentencesJson(SuiteVerdict(all))},
          {"drives", std::move(drives)},
          {"pairs", std::move(pairs)}};
}

void AddSuites(const SuiteComparison& all, Page* page) {
  const std::vector<Sentence> verdict = SuiteVerdict(all);
  page->verdict.insert(page->verdict.begin(), verdict.begin(), verdict.end());
  page->tables.push_back(SuiteBarsTable(all));
  page->tables.push_back(SuiteTable(all));
  std::string alt;
  for (const ComparedSuite& drive : all.drives) {
    const auto composite = drive.suite.composite();
    alt += (alt.empty() ? "" : "; ") + drive.label + ": " +
           (composite ? ScoreDigits(composite->score) + ", interval " +
                            IntervalText(composite->ci_low, composite->ci_high)
                      : "none") +
           (drive.suite.valid() ? "" : ", INVALID");
  }
  Figure bars{.id = "suite-bars",
              .title = "Score of the suite",
              .subtitle =
                  "weighted geometric mean of the scores of its traces; 1000 is the reference "
                  "drive, longer is faster; lines are 95 % intervals",
              .alt = alt,
              .table = "suite",
              .chart = {.x = "drive",
                        .panels = {{"score", Unit::kNumber}},
                        .series = {{"score", Chart::Style::kLine, 0, 0, "ci_low", "ci_high"}},
                        .horizontal = true,
                        .colour_by_row = true,
                        .height = 180},
              .wide = true};
  Section section{"suite", "The suite " + all.drives.front().suite.name, {std::move(bars)}};
  section.parts.emplace_back(TableView{"suites"});
  page->sections.insert(page->sections.begin(), std::move(section));
}

std::string SuiteMarkdown(const SuiteComparison& all) {
  return SentencesMarkdown(SuiteVerdict(all)) + MarkdownTable(SuiteTable(all));
}

}  // namespace blktape
