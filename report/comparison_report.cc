#include "report/comparison_report.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "analysis/measured_score.h"
#include "analysis/score.h"
#include "base/json.h"
#include "base/quantity.h"
#include "base/text_layout.h"
#include "base/version.h"
#include "report/comparison_parts.h"
#include "report/comparison_words.h"
#include "report/markdown.h"
#include "report/table_maker.h"

namespace blktape {
namespace {

Sentence VerdictOf(const DriveComparison& all, const DrivePair& pair) {
  const Sentence::Words first = DriveName(all.drives[pair.first].label);
  const Sentence::Words second = DriveName(all.drives[pair.second].label);
  const Comparison& told = pair.comparison;
  if (pair.shows_state()) {
    return {{{"Its state: "},
             first,
             {" is "},
             {TimesDigits(told.ratio) + " (" + TimesDigits(told.ratio_low) + " to " +
                  TimesDigits(told.ratio_high) + ") times",
              true},
             {" as fast as "},
             second,
             {told.verdict == Verdict::kTie ? ", a tie." : "."}}};
  }
  if (pair.obstacle != Obstacle::kNone) {
    return {{{"No verdict on "},
             first,
             {" and "},
             second,
             {std::string(": ") + ObstacleText(pair.obstacle) + "."}},
            /*bad=*/true};
  }
  return FasterSentence(first, second, told, {{" for this work"}});
}

// Same text for all drives, else "".
template <typename Of>
std::string Shared(const DriveComparison& all, Of of) {
  std::string shared(of(all.drives.front().score));
  for (const ComparedDrive& drive : all.drives) {
    if (of(drive.score) != shared) return "";
  }
  return shared;
}

Json DriveJson(const DriveComparison& all, size_t i) {
  const ComparedDrive& drive = all.drives[i];
  const MeasuredScore& score = drive.score;
  Json targets = Json::array();
  for (const MeasuredScore::Target& target : score.targets) {
    targets.push_back({{"path", target.path},
                       {"model", target.model},
                       {"serial", target.serial},
                       {"firmware", target.firmware},
                       {"size_bytes", OrNull(target.size_bytes)}});
  }
  return {{"label", drive.label},
          {"source", drive.source},
          {"place", OrNull(all.places[i])},
          {"score", OrNull(score.score)},
          {"ci_low", OrNull(score.ci_low)},
          {"ci_high", OrNull(score.ci_high)},
          {"interval_too_wide", score.ci_low ? Json(score.interval_too_wide()) : Json(nullptr)},
          {"storage_wait_ns", OrNull(score.storage_wait_ns)},
          {"storage_wait_s_per_workday", OrNull(score.storage_wait_s_per_workday)},
          {"cycles", score.cycles.size()},
          {"trend_ln", OrNull(score.trend_ln)},
          {"valid", score.valid},
          {"invalid_reasons", score.invalid_reasons},
          {"state", score.state},
          {"rule", score.rule},
          {"trace", score.trace},
          {"trace_hash", score.trace_hash},
          {"piece", score.piece},
          {"reference", score.reference},
          {"notes", score.evidence.notes},
          {"targets", std::move(targets)},
          {"segment_ratios", all.segment_ratios[i]}};
}

}  // namespace

std::vector<std::pair<std::string, std::string>> NotesOf(const DriveComparison& comparison) {
  std::vector<std::pair<std::string, std::string>> notes;
  for (const ComparedDrive& drive : comparison.drives) {
    for (const std::string& note : drive.score.evidence.notes)
      notes.emplace_back(drive.label, note);
  }
  return notes;
}

// One row a drive, the whole of it for programs.
DataTable DrivesTable(const DriveComparison& all) {
  DataTable table{"drives",
                  "Each drive",
                  {{"drive", "drive", Unit::kText, {}},
                   {"place", "place", Unit::kCount, {}},
                   {"score", "score", Unit::kNumber, {}},
                   {"ci_low", "from", Unit::kNumber, {}},
                   {"ci_high", "to", Unit::kNumber, {}},
                   {"storage_wait_ns", "storage wait", Unit::kDurationNs, {}},
                   {"storage_wait_s_per_workday", "wait a workday, s", Unit::kNumber, {}},
                   {"cycles", "cycles", Unit::kCount, {}},
                   {"state", "state", Unit::kText, {}},
                   {"valid", "valid", Unit::kText, {}},
                   {"source", "source", Unit::kText, {}}}};
  for (size_t i = 0; i < all.drives.size(); ++i) {
    const MeasuredScore& score = all.drives[i].score;
    const std::vector<Cell> row = {
        all.drives[i].label,
        all.places[i] ? Cell(uint64_t{*all.places[i]}) : Cell(),
        CellOf(score.score),
        CellOf(score.ci_low),
        CellOf(score.ci_high),
        CellOf(score.storage_wait_ns),
        CellOf(score.storage_wait_s_per_workday),
        uint64_t{score.cycles.size()},
        score.state,
        std::string(score.valid ? "yes" : "no"),
        all.drives[i].source,
    };
    for (size_t c = 0; c < row.size(); ++c) table.columns[c].cells.push_back(row[c]);
  }
  return table;
}

DataTable PairsTable(const DriveComparison& all) {
  DataTable table{"pairs",
                  "Every two drives",
                  {{"first", "first", Unit::kText, {}},
                   {"second", "second", Unit::kText, {}},
                   {"verdict", "verdict", Unit::kText, {}},
                   {"ratio", "times as fast", Unit::kNumber, {}},
                   {"ratio_low", "from", Unit::kNumber, {}},
                   {"ratio_high", "to", Unit::kNumber, {}}}};
  for (const DrivePair& pair : all.pairs) {
    const bool told = pair.obstacle == Obstacle::kNone || pair.shows_state();
    const bool tie = pair.comparison.verdict == Verdict::kTie;
    table.columns[0].cells.emplace_back(all.drives[pair.first].label);
    table.columns[1].cells.emplace_back(all.drives[pair.second].label);
    table.columns[2].cells.emplace_back(told ? std::string(tie ? "a tie" : "the first is faster")
                                             : std::string("none: ") + ObstacleText(pair.obstacle));
    table.columns[3].cells.push_back(told ? Cell(pair.comparison.ratio) : Cell());
    table.columns[4].cells.push_back(told ? Cell(pair.comparison.ratio_low) : Cell());
    table.columns[5].cells.push_back(told ? Cell(pair.comparison.ratio_high) : Cell());
  }
  return table;
}

std::vector<Sentence> ComparisonVerdict(const DriveComparison& comparison) {
  return VerdictFor(comparison, [](const DrivePair&) { return true; });
}

std::vector<Sentence> VerdictFor(const DriveComparison& comparison,
                                 const std::function<bool(const DrivePair&)>& quotes) {
  std::vector<Sentence> sentences;
  for (const Verdict verdict : {Verdict::kFirstFaster, Verdict::kTie}) {
    for (const DrivePair& pair : comparison.pairs) {
      if (pair.obstacle == Obstacle::kNone && pair.comparison.verdict == verdict && quotes(pair)) {
        sentences.push_back(VerdictOf(comparison, pair));
      }
    }
  }
  for (const ComparedDrive& drive : comparison.drives) {
    if (drive.score.valid) continue;
    const auto& reasons = drive.score.invalid_reasons;
    sentences.push_back({{{"INVALID: the score of "},
                          DriveName(drive.label),
                          {reasons.empty() ? "." : ": "},
                          {reasons.empty() ? "" : reasons.front(), false, true}},
                         /*bad=*/true});
  }
  for (const DrivePair& pair : comparison.pairs) {
    if (pair.obstacle == Obstacle::kNone || !quotes(pair)) continue;
    sentences.push_back(VerdictOf(comparison, pair));
  }
  for (const auto& [first, second] : comparison.same_drive) {
    sentences.push_back({{DriveName(comparison.drives[first].label),
                          {" and "},
                          DriveName(comparison.drives[second].label),
                          {" are one drive, by its serial number."}},
                         /*bad=*/true});
  }
  for (const ComparedDrive& drive : comparison.drives) {
    if (drive.score.interval_too_wide()) {
      sentences.push_back({{{"TOO WIDE: the interval of "},
                            DriveName(drive.label),
                            {" is no ground to choose a drive by."}},
                           /*bad=*/true});
    }
    if (drive.score.trend_ln) {
      sentences.push_back({{{"NOT STEADY: the score of "},
                            DriveName(drive.label),
                            {" changes from cycle to cycle."}},
                           /*bad=*/true});
    }
  }
  return sentences;
}

std::string ComparisonText(const DriveComparison& comparison, const TextLook& look) {
  std::string text = SentenceLines(ComparisonVerdict(comparison), look);
  TextTable table({{"drive", true},
                   {"place", false, 5},
                   {"score"},
                   {"95 % interval", false, 8},
                   {"storage wait", false, 7},
                   {"cycles", false, 3},
                   {"state", true, 6},
                   {"valid", true}});
  for (size_t i = 0; i < comparison.drives.size(); ++i) {
    const ComparedDrive& drive = comparison.drives[i];
    const MeasuredScore& score = drive.score;
    const auto& wait_ns = score.storage_wait_ns;
    table.Row({Plain(drive.label, kLabelColumns),
               comparison.places[i] ? std::to_string(*comparison.places[i]) : "-",
               ScoreDigits(score.score), IntervalText(score.ci_low, score.ci_high),
               wait_ns ? CellText(*wait_ns, Unit::kDurationNs) : "-",
               FormatCount(score.cycles.size()), Plain(score.state, 12),
               score.valid ? "yes" : "INVALID"});
  }
  text += "\n" + table.Text(look) + "\n";
  const auto conditions = [&](std::string_view what, const std::string& shared, auto of) {
    if (!shared.empty()) {
      text += Wrapped(what, "           ", Plain(shared, 1'000), look.columns);
      return;
    }
    for (const ComparedDrive& drive : comparison.drives) {
      text += Wrapped(what, "           ",
                      Plain(drive.label, kLabelColumns) + ": " + Plain(of(drive.score), 1'000),
                      look.columns);
    }
  };
  conditions("Trace      ", Shared(comparison, TraceOf), TraceOf);
  const auto rule = [](const MeasuredScore& score) { return std::string(ProcedureOf(score.rule)); };
  conditions("Rule       ", Shared(comparison, rule), rule);
  const auto reference = [](const MeasuredScore& score) { return score.reference + " = 1000"; };
  conditions("Reference  ", Shared(comparison, reference), reference);
  for (const auto& [label, note] : NotesOf(comparison)) {
    text += Wrapped("Note       ", "           ",
                    Plain(label, kLabelColumns) + ": " + Plain(note, 1'000), look.columns);
  }
  return text;
}

Json ComparisonJson(const DriveComparison& comparison) {
  Json drives = Json::array();
  for (size_t i = 0; i < comparison.drives.size(); ++i) drives.push_back(DriveJson(comparison, i));
  Json pairs = Json::array();
  for (const DrivePair& pair : comparison.pairs) {
    pairs.push_back(PairJson(pair.first, pair.second, pair.obstacle, pair.comparison,
                             pair.obstacle == Obstacle::kNone || pair.shows_state()));
  }
  Json same = Json::array();
  for (const auto& [first, second] : comparison.same_drive) same.push_back({first, second});
  return {{"compare", 1},
          {"tool_version", kVersion},
          {"score_version", kScoreVersion},
          {"sentences", SentencesJson(ComparisonVerdict(comparison))},
          {"drives", std::move(drives)},
          {"pairs", std::move(pairs)},
          {"same_drive", std::move(same)}};
}

std::string ComparisonMarkdown(const DriveComparison& comparison) {
  std::string text = SentencesMarkdown(ComparisonVerdict(comparison));
  text += MarkdownTable(DrivesTable(comparison)) + "\n" + MarkdownTable(PairsTable(comparison));
  const auto rule = [](const MeasuredScore& score) { return std::string(ProcedureOf(score.rule)); };
  for (const std::string& shared : {Shared(comparison, TraceOf), Shared(comparison, rule)}) {
    if (!shared.empty()) text += "\n" + MarkdownText(shared) + "\n";
  }
  for (const auto& [label, note] : NotesOf(comparison)) {
    text += "\n" + MarkdownText(label + ": " + note) + "\n";
  }
  return text;
}

std::string ComparisonCsv(const DriveComparison& comparison) {
  Page page;
  page.tables.push_back(DrivesTable(comparison));
  return PageCsv(page).front().second;
}

}  // namespace blktape
