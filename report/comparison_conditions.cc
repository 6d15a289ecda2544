#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/drive_comparison.h"
#include "analysis/measured_score.h"
#include "analysis/score_evidence.h"
#include "analysis/validity.h"
#include "base/quantity.h"
#include "report/comparison_parts.h"
#include "report/comparison_words.h"
#include "report/page.h"

namespace blktape {
namespace {

using Mark = Checklist::Mark;
using enum Checklist::State;
using Runs = std::vector<ScoreEvidence::Run>;

Mark MarkIf(bool good, std::string yes, std::string no) {
  return Mark{good ? kGood : kBad, good ? std::move(yes) : std::move(no)};
}

Mark ValidMark(const MeasuredScore& score) {
  std::string reasons;
  for (const std::string& reason : score.invalid_reasons) {
    reasons += (reasons.empty() ? "INVALID: " : "; ") + reason;
  }
  return MarkIf(score.valid, "valid", reasons.empty() ? "INVALID" : reasons);
}

Mark IntervalMark(const MeasuredScore& score) {
  if (!score.ci_low) return {kNone, "one cycle: no interval"};
  return MarkIf(!score.interval_too_wide(), IntervalText(score.ci_low, score.ci_high),
                "TOO WIDE: " + IntervalText(score.ci_low, score.ci_high));
}

// Of the runs that count.
Mark IssuedMark(const Runs& runs) {
  uint64_t issued = 0;
  uint64_t completed = 0;
  uint64_t errors = 0;
  for (const ScoreEvidence::Run& run : runs) {
    if (run.repeated) continue;
    issued += run.issued;
    completed += run.completed;
    errors += run.errors;
  }
  if (issued == 0) return {kNone, "not told"};
  return MarkIf(completed == issued && errors == 0, FormatCount(issued),
                FormatCount(issued) + " issued, " + FormatCount(completed) + " completed, " +
                    FormatCount(errors) + " with an error");
}

// The run in which a late host adds most to the wait.
Mark HostMark(const ScoreEvidence& evidence) {
  double most = 0;
  bool told = false;
  bool open = false;
  for (const ScoreEvidence::Run& run : evidence.runs) {
    if (run.repeated || !run.waits() || run.wait_ns <= 0) continue;
    told = true;
    open = open || !run.rule.starts_with("closed");
    most = std::max(most, run.host_wait_ns / run.wait_ns);
  }
  if (!told) return {kNone, "not told"};
  std::string text = "at most " + (most < 0.1 ? fmt::format("{:.2g} %", 100 * most)
                                              : CellText(most, Unit::kShare));
  for (size_t p = 0; p < evidence.lateness.ns.size(); ++p) {
    if (kShownPercentilesPpm[p] == 999'000 && evidence.lateness.ns[p]) {
      text += ", p99.9 late by " + CellText(*evidence.lateness.ns[p], Unit::kDurationNs);
    }
  }
  // Of an open loop other limits hold, which are among the reasons.
  if (open) return {kNone, std::move(text)};
  return {most <= kHostWaitLimit ? kGood : kBad, std::move(text)};
}

Mark ForeignMark(const Runs& runs) {
  uint64_t sectors = 0;
  bool told = false;
  for (const ScoreEvidence::Run& run : runs) {
    if (run.repeated || !run.foreign_sectors) continue;
    told = true;
    sectors += *run.foreign_sectors;
  }
  if (!told) return {kNone, "not told"};
  return MarkIf(sectors == 0, "nobody", FormatBytes(sectors * 512) + " of others");
}

Mark HeatMark(const Runs& runs) {
  std::optional<double> low;
  std::optional<double> high;
  std::optional<double> limit;
  std::optional<uint64_t> throttles;
  uint64_t throttled_s = 0;
  for (const ScoreEvidence::Run& run : runs) {
    for (const auto& celsius : {run.celsius_before, run.celsius_after}) {
      if (!celsius) continue;
      low = std::min(low.value_or(*celsius), *celsius);
      high = std::max(high.value_or(*celsius), *celsius);
    }
    if (run.celsius_limit) limit = run.celsius_limit;
    if (run.throttles || run.throttled_s) throttles = throttles.value_or(0);
    if (run.throttles) *throttles += *run.throttles;
    throttled_s += run.throttled_s.value_or(0);
  }
  std::string text = "not told";
  if (low) text = fmt::format("{:.3g} to {:.3g} °C", *low, *high);
  if (low && limit) text += fmt::format(", limit {:.3g} °C", *limit);
  if (throttles && (*throttles > 0 || throttled_s > 0)) {
    return {kBad, "THROTTLED " + FormatCounted(*throttles, "time") + ", " +
                      FormatCount(throttled_s) + " s; " + text};
  }
  if (high && limit && *high >= *limit) return {kBad, text + ": TOO HOT"};
  if (throttles) return {kGood, text + ", not throttled"};
  return {kNone, std::move(text)};
}

Mark ProcessorMark(const Runs& runs) {
  std::optional<uint64_t> throttles;
  for (const ScoreEvidence::Run& run : runs) {
    if (run.cpu_throttles) throttles = throttles.value_or(0) + *run.cpu_throttles;
  }
  if (!throttles) return {kNone, "not told"};
  return MarkIf(*throttles == 0, "never", FormatCounted(*throttles, "time"));
}

// Of each target what `of` says, where it says something. The serial number is nowhere: pages are
// published.
template <typename Of>
Mark TargetMark(const MeasuredScore& score, Of of) {
  std::string text;
  for (size_t t = 0; t < score.targets.size() && t < score.evidence.targets.size(); ++t) {
    std::string words;
    for (const std::string& word : of(score.targets[t], score.evidence.targets[t])) {
      if (!word.empty()) words += (words.empty() ? "" : ", ") + word;
    }
    if (!words.empty()) text += (text.empty() ? "" : "; ") + words;
  }
  return {kNone, text.empty() ? "not told" : text};
}

using Target = MeasuredScore::Target;
using More = ScoreEvidence::Target;

Mark SizeMark(const MeasuredScore& score) {
  return TargetMark(score, [](const Target& target, const More& more) {
    return std::vector<std::string>{
        target.size_bytes ? FormatBytes(*target.size_bytes) : std::string(),
        target.firmware.empty() ? std::string() : "firmware " + target.firmware,
        more.is_file ? "a file" : ""};
  });
}

Mark LinkMark(const MeasuredScore& score) {
  return TargetMark(score, [](const Target&, const More& more) {
    return std::vector<std::string>{more.transport, more.link};
  });
}

Mark CacheMark(const MeasuredScore& score) {
  return TargetMark(score, [](const Target&, const More& more) {
    return std::vector<std::string>{
        more.write_cache,
        more.drive_write_cache.empty() ? std::string() : "in the drive " + more.drive_write_cache,
        more.scheduler.empty() ? std::string() : "scheduler " + more.scheduler};
  });
}

std::string EngineOf(const MeasuredScore& score) {
  return score.evidence.runs.empty() ? "not told" : score.evidence.runs.front().engine;
}

Mark RuleMark(const DriveComparison& all, size_t i) {
  for (const DrivePair& pair : all.pairs) {
    if (std::min(pair.first, pair.second) != 0 || std::max(pair.first, pair.second) != i) continue;
    if (pair.obstacle == Obstacle::kOtherRule) return {kBad, "another"};
    if (pair.obstacle == Obstacle::kOtherState) return {kNone, "but for the state"};
  }
  return {kGood, "the same"};
}

Checklist Checks(const DriveComparison& all) {
  Checklist list{.caption = "What a verdict rests on", .subjects = {}, .rows = {}};
  const MeasuredScore& base = all.drives.front().score;
  const std::vector<std::pair<std::string, std::function<Mark(const MeasuredScore&)>>> rows = {
      {"the score is valid", ValidMark},
      {"the same work as the first",
       [&](const MeasuredScore& score) {
         return MarkIf(score.trace_hash == base.trace_hash && score.piece == base.piece,
                       TraceOf(score), TraceOf(score));
       }},
      {"the interval is narrow enough to choose by", IntervalMark},
      {"steady over the cycles",
       [](const MeasuredScore& score) {
         return MarkIf(!score.trend_ln, "no trend",
                       "NOT STEADY: its score changes over the cycles");
       }},
      {"all I/Os issued and completed",
       [](const MeasuredScore& score) { return IssuedMark(score.evidence.runs); }},
      {"what a late host adds to the wait",
       [](const MeasuredScore& score) { return HostMark(score.evidence); }},
      {"others used the drive meanwhile",
       [](const MeasuredScore& score) { return ForeignMark(score.evidence.runs); }},
      {"temperature of the drive",
       [](const MeasuredScore& score) { return HeatMark(score.evidence.runs); }},
      {"CPUs slowed down for their temperature",
       [](const MeasuredScore& score) { return ProcessorMark(score.evidence.runs); }},
      {"cycles that count, and were measured again",
       [](const MeasuredScore& score) {
         return Mark{kNone, fmt::format("{}, {}", score.cycles.size(), score.repeated_cycles)};
       }},
      {"state", [](const MeasuredScore& score) { return Mark{kNone, score.state}; }},
      {"capacity and firmware", SizeMark},
      {"link", LinkMark},
      {"write cache and scheduler", CacheMark},
      {"engine", [](const MeasuredScore& score) { return Mark{kNone, EngineOf(score)}; }}};
  for (const ComparedDrive& drive : all.drives) list.subjects.push_back(drive.label);
  for (const auto& [check, mark_of] : rows) {
    Checklist::Row row{check, {}};
    for (const ComparedDrive& drive : all.drives) row.marks.push_back(mark_of(drive.score));
    list.rows.push_back(std::move(row));
  }
  Checklist::Row rules{"the same rule as the first", {}};
  for (size_t i = 0; i < all.drives.size(); ++i) rules.marks.push_back(RuleMark(all, i));
  list.rows.insert(list.rows.begin() + 2, std::move(rules));
  return list;
}

}  // namespace

void AddConditions(const DriveComparison& all, Page* page) {
  Section section{"conditions", "Conditions and validity", {Checks(all)}};
  // What a cell of the checklist has no room for.
  for (const ComparedDrive& drive : all.drives) {
    for (const std::string& reason : drive.score.invalid_reasons) {
      section.parts.emplace_back(Paragraph{drive.label + " is INVALID: " + reason});
    }
  }
  for (const auto& [label, note] : NotesOf(all)) {
    section.parts.emplace_back(Paragraph{label + ": " + note + "."});
  }
  const MeasuredScore& base = all.drives.front().score;
  const auto of_base = [&](const ComparedDrive& drive) { return drive.score.rule == base.rule; };
  if (std::all_of(all.drives.begin(), all.drives.end(), of_base)) {
    section.parts.emplace_back(Paragraph{"The rule of all: " + base.rule});
  } else {
    for (const ComparedDrive& drive : all.drives) {
      section.parts.emplace_back(Paragraph{"The rule of " + drive.label + ": " + drive.score.rule});
    }
  }
  std::vector<std::string> told;
  for (const ComparedDrive& drive : all.drives) {
    for (const std::string& text :
         {drive.score.evidence.host.empty() ? std::string()
                                            : "The host: " + drive.score.evidence.host,
          "What 1000 is: " + drive.score.reference + "."}) {
      if (text.empty() || std::find(told.begin(), told.end(), text) != told.end()) continue;
      told.push_back(text);
      section.parts.emplace_back(Paragraph{text});
    }
  }
  page->sections.push_back(std::move(section));
}

}  // namespace blktape
