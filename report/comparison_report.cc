#include "report/comparison_report.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "analysis/measured_score.h"
#include "analysis/score.h"
#include "base/quantity.h"
#include "base/version.h"
#include "report/report_text.h"

namespace blktape {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLabelColumns = 32;  // of a name on a terminal
constexpr size_t kColours = 6;        // of the page's palette

Sentence::Words Name(const std::string& label) { return {label, true, true}; }

std::string Ratio(double ratio) { return fmt::format("{:.2f}", ratio); }

std::string ScoreDigits(const std::optional<double>& score) {
  if (!score) return "none";
  return *score >= 1000 ? fmt::format("{:.0f}", *score) : FormatNumber(*score);
}

std::string Interval(const MeasuredScore& score) {
  if (!score.ci_low || !score.ci_high) return "none";
  return ScoreDigits(score.ci_low) + " to " + ScoreDigits(score.ci_high);
}

const char* ObstacleKey(Obstacle obstacle) {
  switch (obstacle) {
    case Obstacle::kNone:
      break;
    case Obstacle::kInvalid:
      return "invalid";
    case Obstacle::kOtherTrace:
      return "other_trace";
    case Obstacle::kOtherRule:
      return "other_rule";
    case Obstacle::kOtherReference:
      return "other_reference";
    case Obstacle::kTooFewCycles:
      return "too_few_cycles";
  }
  return "";
}

const char* ObstacleText(Obstacle obstacle) {
  switch (obstacle) {
    case Obstacle::kNone:
      break;
    case Obstacle::kInvalid:
      return "a score that is not valid says nothing";
    case Obstacle::kOtherTrace:
      return "they were scored for different work: another trace, or another piece of it";
    case Obstacle::kOtherRule:
      return "they were measured by different rules, which are below";
    case Obstacle::kOtherReference:
      return "their samples were scored against different references";
    case Obstacle::kTooFewCycles:
      return "it takes two cycles of each";
  }
  return "";
}

Sentence VerdictOf(const DriveComparison& all, const DrivePair& pair) {
  const Sentence::Words first = Name(all.drives[pair.first].label);
  const Sentence::Words second = Name(all.drives[pair.second].label);
  const Comparison& told = pair.comparison;
  if (pair.obstacle != Obstacle::kNone) {
    return {{{"No verdict on "},
             first,
             {" and "},
             second,
             {std::string(": ") + ObstacleText(pair.obstacle) + "."}},
            /*bad=*/true};
  }
  const std::string interval = "(" + Ratio(told.ratio_low) + " to " + Ratio(told.ratio_high) + ")";
  if (told.verdict == Verdict::kTie) {
    return {{first,
             {" and "},
             second,
             {" tie for this work: the first is " + Ratio(told.ratio) + " " + interval +
              " times as fast as the second."}}};
  }
  return {{first,
           {" is "},
           {Ratio(told.ratio) + " " + interval + " times", true},
           {" as fast as "},
           second,
           {" for this work."}}};
}

std::string Flattened(const Sentence& sentence, size_t most_columns) {
  std::string text;
  for (const Sentence::Words& one : sentence.words) {
    text += one.foreign && most_columns > 0 ? Plain(one.text, most_columns) : one.text;
  }
  return text;
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

std::string TraceOf(const MeasuredScore& score) {
  return score.piece.empty() ? score.trace : score.trace + ", " + score.piece;
}

Cell Known(const std::optional<double>& value) { return value ? Cell(*value) : Cell(); }

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
        Known(score.score),
        Known(score.ci_low),
        Known(score.ci_high),
        Known(score.storage_wait_ns),
        Known(score.storage_wait_s_per_workday),
        uint64_t{score.cycles.size()},
        score.state,
        std::string(score.valid ? "yes" : "no"),
        all.drives[i].source,
    };
    for (size_t c = 0; c < row.size(); ++c) table.columns[c].cells.push_back(row[c]);
  }
  return table;
}

// What the bars are drawn from: an invalid score looks invalid there too.
DataTable BarsTable(const DriveComparison& all) {
  DataTable table{"score",
                  "Score and storage wait",
                  {{"drive", "drive", Unit::kText, {}},
                   {"score", "score", Unit::kNumber, {}},
                   {"ci_low", "from", Unit::kNumber, {}},
                   {"ci_high", "to", Unit::kNumber, {}},
                   {"storage_wait_ns", "storage wait", Unit::kDurationNs, {}}}};
  for (const ComparedDrive& drive : all.drives) {
    const MeasuredScore& score = drive.score;
    table.columns[0].cells.emplace_back(score.valid ? drive.label : "INVALID: " + drive.label);
    table.columns[1].cells.push_back(Known(score.score));
    table.columns[2].cells.push_back(Known(score.ci_low));
    table.columns[3].cells.push_back(Known(score.ci_high));
    table.columns[4].cells.push_back(Known(score.storage_wait_ns));
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
    const bool told = pair.obstacle == Obstacle::kNone;
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

size_t SegmentsOf(const DriveComparison& all) { return all.segment_ratios.front().size(); }

DataTable SegmentsTable(const DriveComparison& all) {
  DataTable table{"segments", "By segment", {{"segment", "segment", Unit::kCount, {}}}};
  for (size_t k = 0; k < SegmentsOf(all); ++k) {
    table.columns[0].cells.emplace_back(uint64_t{k + 1});
  }
  for (size_t i = 0; i < all.drives.size(); ++i) {
    if (all.segment_ratios[i].empty()) continue;
    Column column{fmt::format("ratio_{}", i + 1), all.drives[i].label, Unit::kNumber, {}};
    for (const double ratio : all.segment_ratios[i]) column.cells.emplace_back(ratio);
    table.columns.push_back(std::move(column));
  }
  return table;
}

Figure ScoreFigure(const DriveComparison& all) {
  std::string alt;
  for (const ComparedDrive& drive : all.drives) {
    alt += (alt.empty() ? "" : "; ") + drive.label + ": " + ScoreDigits(drive.score.score) +
           ", interval " + Interval(drive.score) + (drive.score.valid ? "" : ", INVALID");
  }
  return {.id = "score-bars",
          .title = "Score",
          .subtitle =
              "1000 is the reference drive, longer is faster; lines are 95 % intervals, "
              "run to run",
          .alt = alt,
          .table = "score",
          .chart = {.x = "drive",
                    .panels = {{"score", Unit::kNumber}},
                    .series = {{"score", Chart::Style::kLine, 0, 0, "ci_low", "ci_high"}},
                    .horizontal = true,
                    .colour_by_row = true,
                    .height = 180}};
}

Figure WaitFigure(const DriveComparison& all) {
  std::string alt;
  for (const ComparedDrive& drive : all.drives) {
    const auto& wait_ns = drive.score.storage_wait_ns;
    alt += (alt.empty() ? "" : "; ") + drive.label + ": " +
           (wait_ns ? CellText(*wait_ns, Unit::kDurationNs) : "not known");
  }
  return {.id = "wait-bars",
          .title = "Waiting for storage",
          .subtitle =
              "time in which somebody waited in this work, mean over cycles; shorter is "
              "better",
          .alt = alt,
          .table = "score",
          .chart = {.x = "drive",
                    .panels = {{"storage wait", Unit::kDurationNs}},
                    .series = {{"storage_wait_ns"}},
                    .horizontal = true,
                    .colour_by_row = true,
                    .height = 180}};
}

Figure SegmentsFigure(const DriveComparison& all) {
  using Style = Chart::Style;
  static constexpr Style kStyles[] = {Style::kLine, Style::kDashed, Style::kDotted};
  Chart chart{.kind = Chart::Kind::kLines,
              .x = "segment",
              .x_axis = {"segment of the trace", Unit::kCount},
              .panels = {{"times as fast", Unit::kNumber}}};
  size_t drawn = 0;
  for (size_t i = 0; i < all.drives.size(); ++i) {
    if (all.segment_ratios[i].empty()) continue;
    chart.series.push_back({fmt::format("ratio_{}", i + 1), kStyles[drawn % std::size(kStyles)],
                            static_cast<int>(drawn % kColours)});
    ++drawn;
  }
  const std::string& base = all.drives.front().label;
  return {.id = "segment-ratios",
          .title = "Where a drive wins",
          .subtitle = "how many times as fast as " + base +
                      " in each segment of the trace; above 1 is faster",
          .alt = "a line for each drive over the segments of the trace, in the table below; " +
                 base + " is 1 throughout",
          .table = "segments",
          .chart = std::move(chart),
          .wide = true};
}

Checklist Checks(const DriveComparison& all) {
  using enum Checklist::State;
  Checklist list{.caption = "What a verdict rests on", .subjects = {}, .rows = {}};
  std::vector<Checklist::Row> rows = {
      {"the score is valid", {}},         {"the same work as the first", {}},
      {"the same rule as the first", {}}, {"the interval is narrow enough to choose by", {}},
      {"steady over the cycles", {}},     {"cycles measured again", {}}};
  const MeasuredScore& base = all.drives.front().score;
  const auto mark = [](bool good, std::string yes, std::string no) {
    return Checklist::Mark{good ? kGood : kBad, good ? std::move(yes) : std::move(no)};
  };
  for (const ComparedDrive& drive : all.drives) {
    const MeasuredScore& score = drive.score;
    list.subjects.push_back(drive.label);
    std::string reasons;
    for (const std::string& reason : score.invalid_reasons) {
      reasons += (reasons.empty() ? "INVALID: " : "; ") + reason;
    }
    rows[0].marks.push_back(mark(score.valid, "valid", reasons.empty() ? "INVALID" : reasons));
    rows[1].marks.push_back(mark(score.trace_hash == base.trace_hash && score.piece == base.piece,
                                 TraceOf(score), TraceOf(score)));
    rows[2].marks.push_back(
        mark(ProcedureOf(score.rule) == ProcedureOf(base.rule), "the same", "another"));
    rows[3].marks.push_back(!score.ci_low ? Checklist::Mark{kNone, "one cycle: no interval"}
                                          : mark(!score.interval_too_wide(), Interval(score),
                                                 "TOO WIDE: " + Interval(score)));
    rows[4].marks.push_back(
        mark(!score.trend_ln, "no trend", "NOT STEADY: its score changes over the cycles"));
    rows[5].marks.push_back({kNone, FormatCount(score.repeated_cycles)});
  }
  list.rows = std::move(rows);
  return list;
}

// What a cell of the checklist has no room for.
std::vector<Paragraph> ConditionTexts(const DriveComparison& all) {
  std::vector<Paragraph> texts;
  for (const ComparedDrive& drive : all.drives) {
    for (const std::string& reason : drive.score.invalid_reasons) {
      texts.push_back({drive.label + " is INVALID: " + reason});
    }
  }
  for (const ComparedDrive& drive : all.drives) {
    texts.push_back({drive.label + ": " + drive.score.rule});
  }
  return texts;
}

// In a cell of a Markdown table: no markup, no end of the cell or the line.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) {
      escaped += ' ';
    } else if (c == '<' || c == '>' || c == '&') {
      escaped += c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&amp;";
    } else {
      if (std::string_view("\\`*_[]|!#~").find(c) != std::string_view::npos) escaped += '\\';
      escaped += c;
    }
  }
  return escaped;
}

std::string MarkdownTable(const DataTable& table) {
  std::string text = "|";
  for (const Column& column : table.columns) text += " " + Escaped(column.label) + " |";
  text += "\n|";
  for (const Column& column : table.columns) text += column.unit == Unit::kText ? "---|" : "---:|";
  text += "\n";
  for (size_t row = 0; row < table.rows(); ++row) {
    text += "|";
    for (const Column& column : table.columns) {
      text += " " + Escaped(CellText(column.cells[row], column.unit)) + " |";
    }
    text += "\n";
  }
  return text;
}

Json OrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json DriveJson(const DriveComparison& all, size_t i) {
  const ComparedDrive& drive = all.drives[i];
  const MeasuredScore& score = drive.score;
  Json targets = Json::array();
  for (const MeasuredScore::Target& target : score.targets) {
    targets.push_back({{"path", target.path},
                       {"model", target.model},
                       {"serial", target.serial},
                       {"firmware", target.firmware},
                       {"size_bytes", target.size_bytes ? Json(*target.size_bytes) : Json()}});
  }
  return {{"label", drive.label},
          {"source", drive.source},
          {"place", all.places[i] ? Json(*all.places[i]) : Json(nullptr)},
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
          {"targets", std::move(targets)},
          {"segment_ratios", all.segment_ratios[i]}};
}

}  // namespace

std::vector<Sentence> ComparisonVerdict(const DriveComparison& comparison) {
  std::vector<Sentence> sentences;
  for (const Verdict verdict : {Verdict::kFirstFaster, Verdict::kTie}) {
    for (const DrivePair& pair : comparison.pairs) {
      if (pair.obstacle == Obstacle::kNone && pair.comparison.verdict == verdict) {
        sentences.push_back(VerdictOf(comparison, pair));
      }
    }
  }
  for (const ComparedDrive& drive : comparison.drives) {
    if (drive.score.valid) continue;
    const auto& reasons = drive.score.invalid_reasons;
    sentences.push_back({{{"INVALID: the score of "},
                          Name(drive.label),
                          {reasons.empty() ? "." : ": "},
                          {reasons.empty() ? "" : reasons.front(), false, true}},
                         /*bad=*/true});
  }
  for (const DrivePair& pair : comparison.pairs) {
    if (pair.obstacle != Obstacle::kNone) sentences.push_back(VerdictOf(comparison, pair));
  }
  for (const auto& [first, second] : comparison.same_drive) {
    sentences.push_back({{Name(comparison.drives[first].label),
                          {" and "},
                          Name(comparison.drives[second].label),
                          {" are one drive, by its serial number."}},
                         /*bad=*/true});
  }
  for (const ComparedDrive& drive : comparison.drives) {
    if (drive.score.interval_too_wide()) {
      sentences.push_back({{{"TOO WIDE: the interval of "},
                            Name(drive.label),
                            {" is no ground to choose a drive by."}},
                           /*bad=*/true});
    }
    if (drive.score.trend_ln) {
      sentences.push_back(
          {{{"NOT STEADY: the score of "}, Name(drive.label), {" changes from cycle to cycle."}},
           /*bad=*/true});
    }
  }
  return sentences;
}

std::string ComparisonText(const DriveComparison& comparison, const TextLook& look) {
  std::string text;
  for (const Sentence& sentence : ComparisonVerdict(comparison)) {
    // A reason may be long: it is cut by lines, not by columns.
    const std::string flat = Plain(Flattened(sentence, 4 * kLabelColumns), 1'000);
    const std::string lines = Wrapped("", "  ", flat, look.columns);
    text += sentence.bad ? Bad(lines.substr(0, lines.size() - 1), look) + "\n"
                         : Strong(lines.substr(0, lines.size() - 1), look) + "\n";
  }
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
               ScoreDigits(score.score), Interval(score),
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
  return text;
}

Json ComparisonJson(const DriveComparison& comparison) {
  Json drives = Json::array();
  for (size_t i = 0; i < comparison.drives.size(); ++i) drives.push_back(DriveJson(comparison, i));
  Json pairs = Json::array();
  for (const DrivePair& pair : comparison.pairs) {
    const bool told = pair.obstacle == Obstacle::kNone;
    const bool tie = pair.comparison.verdict == Verdict::kTie;
    pairs.push_back({{"first", pair.first},
                     {"second", pair.second},
                     {"verdict", told ? Json(tie ? "tie" : "faster") : Json(nullptr)},
                     {"obstacle", told ? Json(nullptr) : Json(ObstacleKey(pair.obstacle))},
                     {"ratio", told ? Json(pair.comparison.ratio) : Json(nullptr)},
                     {"ratio_low", told ? Json(pair.comparison.ratio_low) : Json(nullptr)},
                     {"ratio_high", told ? Json(pair.comparison.ratio_high) : Json(nullptr)}});
  }
  Json said = Json::array();
  for (const Sentence& sentence : ComparisonVerdict(comparison)) {
    said.push_back({{"text", Flattened(sentence, 0)}, {"bad", sentence.bad}});
  }
  Json same = Json::array();
  for (const auto& [first, second] : comparison.same_drive) same.push_back({first, second});
  return {{"compare", 1},
          {"tool_version", kVersion},
          {"score_version", kScoreVersion},
          {"sentences", std::move(said)},
          {"drives", std::move(drives)},
          {"pairs", std::move(pairs)},
          {"same_drive", std::move(same)}};
}

std::string ComparisonMarkdown(const DriveComparison& comparison) {
  std::string text;
  for (const Sentence& sentence : ComparisonVerdict(comparison)) {
    const std::string escaped = Escaped(Flattened(sentence, 0));
    text += sentence.bad ? escaped + "\n\n" : "**" + escaped + "**\n\n";
  }
  text += MarkdownTable(DrivesTable(comparison)) + "\n" + MarkdownTable(PairsTable(comparison));
  const auto rule = [](const MeasuredScore& score) { return std::string(ProcedureOf(score.rule)); };
  for (const std::string& shared : {Shared(comparison, TraceOf), Shared(comparison, rule)}) {
    if (!shared.empty()) text += "\n" + Escaped(shared) + "\n";
  }
  return text;
}

std::string ComparisonCsv(const DriveComparison& comparison) {
  Page page;
  page.tables.push_back(DrivesTable(comparison));
  return PageCsv(page).front().second;
}

Page ComparisonPage(const DriveComparison& comparison) {
  const std::string trace = Shared(comparison, TraceOf);
  Page page{.title = fmt::format("{} drives compared", comparison.drives.size()),
            .subtitle = trace.empty() ? "scored for different work" : "for the work in " + trace};
  page.verdict = ComparisonVerdict(comparison);
  page.tables = {BarsTable(comparison), DrivesTable(comparison), PairsTable(comparison)};
  page.sections.push_back(
      {"scores", "How fast", {ScoreFigure(comparison), WaitFigure(comparison)}});
  page.sections.back().parts.emplace_back(TableView{"pairs"});
  // One segment, which is the whole, is no line.
  if (SegmentsOf(comparison) > 1) {
    page.tables.push_back(SegmentsTable(comparison));
    page.sections.push_back({"segments", "Over the work", {SegmentsFigure(comparison)}});
  }
  page.sections.push_back({"conditions", "Conditions and validity", {Checks(comparison)}});
  for (Paragraph& text : ConditionTexts(comparison)) {
    page.sections.back().parts.emplace_back(std::move(text));
  }
  page.sections.push_back({"figures", "Figures", {TableView{"drives"}}});
  page.footer = fmt::format("blktape {}, score version {}", kVersion, kScoreVersion);
  return page;
}

}  // namespace blktape
