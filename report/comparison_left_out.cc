#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/drive_comparison.h"
#include "analysis/measured_score.h"
#include "analysis/score_evidence.h"
#include "base/quantity.h"
#include "report/comparison_parts.h"
#include "report/comparison_words.h"
#include "report/page.h"

namespace blktape {
namespace {

void TellWork(const MeasuredScore& score, std::vector<std::string>* told) {
  const ScoreEvidence& evidence = score.evidence;
  if (evidence.lost_events > 0) {
    told->push_back("the recording lost " + FormatCounted(evidence.lost_events, "event") +
                    (evidence.loss_accepted ? ", which was accepted by name" : ""));
  }
  if (evidence.sample) {
    uint64_t replayed = 0;
    for (const auto& segment : evidence.segments) replayed += segment.foreground;
    told->push_back(fmt::format(
        "of the trace's {} windows {} were drawn and stand for all: {} of {} I/Os that somebody "
        "waits for; responses, series and derived figures are of these alone, which hold more of "
        "the heavy windows than the whole",
        FormatCount(evidence.sample->windows), FormatCount(evidence.sample->windows_drawn),
        FormatCount(replayed), FormatCount(evidence.sample->foreground)));
  }
  if (evidence.all_is_foreground) {
    told->emplace_back(
        "the trace marks no I/O as one that somebody waits for, so that all reads, writes and "
        "flushes count as such");
  }
  for (const std::string& shared : evidence.shared) {
    told->push_back("addresses of recorded devices overlap: " + shared);
  }
}

void TellRuns(const ScoreEvidence& evidence, std::vector<std::string>* told) {
  double idle_cut_ns = 0;
  std::map<std::string, uint64_t> skipped;
  std::map<std::string, uint64_t> emulated;
  for (const ScoreEvidence::Run& run : evidence.runs) {
    idle_cut_ns = std::max(idle_cut_ns, run.idle_cut_ns.value_or(0));
    for (const auto& [why, count] : run.skipped) skipped[why] = std::max(skipped[why], count);
    for (const auto& [what, count] : run.emulated) emulated[what] = std::max(emulated[what], count);
  }
  if (idle_cut_ns > 0) {
    told->push_back(CellText(idle_cut_ns, Unit::kDurationNs) +
                    " of idle and think time were cut from each closed-loop run");
  }
  for (const auto& [why, count] : skipped) {
    told->push_back(FormatCounted(count, "I/O") + " of a run were not issued: " + why);
  }
  for (const auto& [what, count] : emulated) {
    told->push_back(FormatCounted(count, "I/O") + " of a run were emulated: " + what);
  }
}

void TellCycles(const MeasuredScore& score, std::vector<std::string>* told) {
  const ScoreEvidence& evidence = score.evidence;
  for (const ScoreEvidence::Repeated& cycle : evidence.repeated) {
    std::string text = "cycle " + std::to_string(cycle.cycle) + " was measured again";
    for (const std::string& reason : cycle.reasons) text += "; " + reason;
    told->push_back(std::move(text));
  }
  if (evidence.score_with_repeated) {
    told->push_back("with these cycles the score would be " +
                    ScoreDigits(evidence.score_with_repeated));
  }
}

void TellLacks(const DriveComparison& all, size_t i, std::vector<std::string>* told) {
  const ScoreEvidence& evidence = all.drives[i].score.evidence;
  if (all.segment_ratios[i].empty() && all.drives.size() > 1) {
    told->emplace_back("its segments cannot be set against the first drive's");
  }
  if (!evidence.series || evidence.lateness.ns.empty()) {
    told->emplace_back("its report has no percentiles or no series: they are in no chart");
  }
  const bool warm = std::any_of(evidence.runs.begin(), evidence.runs.end(),
                                [](const auto& run) { return run.celsius_after.has_value(); });
  if (!warm) told->emplace_back("no temperature is known");
}

}  // namespace

void AddLeftOut(const DriveComparison& all, Page* page) {
  // What is said of several drives is said once.
  std::vector<std::pair<std::string, std::string>> said;
  for (size_t i = 0; i < all.drives.size(); ++i) {
    const MeasuredScore& score = all.drives[i].score;
    std::vector<std::string> told;
    TellWork(score, &told);
    TellRuns(score.evidence, &told);
    TellCycles(score, &told);
    TellLacks(all, i, &told);
    for (std::string& text : told) {
      const auto same = std::find_if(said.begin(), said.end(),
                                     [&](const auto& one) { return one.second == text; });
      if (same == said.end()) {
        said.emplace_back(all.drives[i].label, std::move(text));
      } else {
        same->first += ", " + all.drives[i].label;
      }
    }
  }
  Section section{"left-out", "What is lost, cut or left out", {}};
  for (const auto& [who, what] : said) {
    section.parts.emplace_back(Paragraph{who + ": " + what + "."});
  }
  if (said.empty()) {
    section.parts.emplace_back(
        Paragraph{"Nothing: each run replayed all I/Os of the trace, and nothing of the recording "
                  "was lost."});
  }
  page->sections.push_back(std::move(section));
}

}  // namespace blktape
