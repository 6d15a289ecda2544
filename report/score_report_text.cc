#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.h"
#include "base/text_layout.h"
#include "report/comparison_words.h"
#include "report/report_text.h"
#include "report/score_report_out.h"
#include "report/target_notes.h"

namespace blktape {
namespace {

std::string TargetNames(const ScoreReport& report) {
  std::string names;
  for (const proto::Device& target : report.targets) {
    names += names.empty() ? "" : ", ";
    names += target.path();
    if (!target.model().empty()) names += " (" + target.model() + ")";
    if (target.is_file()) names += " (a file)";
  }
  return names;
}

std::string Headline(const ScoreReport& report) {
  std::string text;
  if (!report.valid()) {
    text += "INVALID: these figures are no score\n";
    for (const InvalidReason& reason : report.invalid_reasons) {
      text += Wrapped("  ", "    ", reason.Sentence());
    }
    if (report.ended_early) text += "  Ended early: more cycles cannot mend that.\n";
    text += "\n";
  }
  const std::string_view word = report.valid() ? "Score         " : "(invalid)     ";
  if (!report.score) return text + std::string(word) + "n/a\n";
  const Score& score = *report.score;
  text += std::string(word) + ScoreDigits(score.score);
  if (score.ci_low && score.ci_high) {
    text += fmt::format("   95 % interval {} to {}, {}, {} cycle{}", ScoreDigits(score.ci_low),
                        ScoreDigits(score.ci_high), report.sample ? "sampled" : "run to run",
                        report.cycles.size(), report.cycles.size() == 1 ? "" : "s");
    if (report.first_stage > 0) {
      text += fmt::format("\n              two stages: the spread is that of the first {} cycles",
                          report.first_stage);
    }
  } else {
    text += "   no interval: one cycle only";
  }
  text += "\n";
  if (score.interval_too_wide().value_or(false)) {
    const std::string_view remedy =
        score.mostly_of_the_draw()
            ? "Most of that is the draw of the sample, which only a larger --budget narrows."
            : "More cycles or a quieter machine narrow it.";
    text += Wrapped("TOO WIDE      ", "              ",
                    fmt::format("to choose a drive by: the ends of the interval are {:.2f} times "
                                "apart, and from {:.2f} on it hides even that the work takes "
                                "twice as long. {}",
                                *score.interval_ratio(), WidestIntervalRatio(), remedy));
  }
  return text;
}

std::string TrendText(const ScoreReport& report) {
  if (!report.score || !report.score->trend_ln) return "";
  const double change = *report.score->trend_ln;
  return Wrapped("NOT STEADY    ", "              ",
                 fmt::format("the score {} by {:.1f} % from the first cycle to the last, which is "
                             "no chance: the drive is not in one state. A preparation (--state) "
                             "or more cycles tell more.",
                             change < 0 ? "falls" : "rises", 100 * std::abs(std::expm1(change))));
}

std::string RepeatedText(const ScoreReport& report) {
  std::string text;
  for (const RepeatedCycle& one : report.repeated) {
    for (const InvalidReason& reason : one.reasons) {
      text += Wrapped(text.empty() ? "Repeated      " : "              ", "              ",
                      reason.Sentence());
    }
  }
  if (const std::optional<double> with = report.score_with_repeated()) {
    text +=
        fmt::format("              The score if {} counted: {}\n",
                    report.repeated.size() == 1 ? "this cycle" : "these cycles", ScoreDigits(with));
  }
  return text;
}

std::string NotesText(const ScoreReport& report) {
  std::string text;
  for (const std::string& note : ScoreNotes(report)) {
    text += Wrapped("Note          ", "              ", note);
  }
  return text;
}

std::string VerdictLine(const ScoreReport& report) {
  if (!report.comparison) return "";
  const Comparison& comparison = *report.comparison;
  if (comparison.verdict == Verdict::kTooFewCycles) {
    return "Verdict       none: it takes two cycles of this drive and of the reference\n";
  }
  const std::string_view word = comparison.verdict == Verdict::kFirstFaster    ? "faster than"
                                : comparison.verdict == Verdict::kSecondFaster ? "slower than"
                                                                               : "a tie with";
  return Wrapped(report.valid() ? "Verdict       " : "(invalid)     ", "              ",
                 fmt::format("{} the reference: {:.3f} times its score, 95 % interval {:.3f} to "
                             "{:.3f}, the spread of both drives in it",
                             word, comparison.ratio, comparison.ratio_low, comparison.ratio_high));
}

std::string WaitLine(const ScoreReport& report) {
  const std::optional<double> wait_ns = report.storage_wait_ns();
  if (!wait_ns) return "";
  std::string text = "Storage wait  " + FormatDurationNs(static_cast<int64_t>(*wait_ns));
  if (report.recording_ns > 0) text += " in the " + FormatDurationNs(report.recording_ns);
  if (report.reference_wait_ns) {
    text += " recorded; the reference " + FormatDurationNs(*report.reference_wait_ns);
  }
  text += "\n";
  if (const std::optional<double> wait_s = report.storage_wait_s_per_workday()) {
    text += "              " + FormatDurationNs(static_cast<int64_t>(*wait_s * 1e9)) +
            " per workday of 8 h of such work\n";
  }
  return text;
}

// Explains the score, is not in it.
std::string ResponseTable(const ScoreReport& report) {
  static constexpr std::array kNames = {"reads up to 16 KiB", "larger reads",
                                        "sync writes and flushes"};
  std::string text;
  for (size_t i = 0; i < kWaitClasses; ++i) {
    const ClassResponse one = report.MeanResponse(static_cast<WaitClass>(i));
    if (!one.mean_ns || !one.tail_ns) continue;
    text += fmt::format("  {:<36}{:>12} {:>12} {:>12}\n", kNames[i], FormatCount(one.ios),
                        FormatDurationNs(static_cast<int64_t>(*one.mean_ns)),
                        FormatDurationNs(static_cast<int64_t>(*one.tail_ns)));
  }
  if (text.empty()) return text;
  return fmt::format("\n{:<38}{:>12} {:>12} {:>12}\n", "Response, not in the score", "I/Os", "mean",
                     "worst 1 %") +
         text;
}

// What is taken out of response and wait: the mean over the runs that count.
std::string HostPartText(const ScoreReport& report) {
  proto::HostPart sum;
  int64_t parts = 0;
  for (const ScoredRun& run : report.runs) {
    if (run.repeated) continue;
    for (const proto::HostPart& part : run.outcome.host_parts()) {
      sum.set_transfer_ns(sum.transfer_ns() + part.transfer_ns());
      sum.set_transfer_after_pause_ns(sum.transfer_after_pause_ns() +
                                      part.transfer_after_pause_ns());
      sum.set_flush_ns(sum.flush_ns() + part.flush_ns());
      sum.set_flush_after_pause_ns(sum.flush_after_pause_ns() + part.flush_after_pause_ns());
      ++parts;
    }
  }
  if (parts == 0) return "";
  const auto mean = [parts](int64_t sum_ns) { return FormatDurationNs(sum_ns / parts); };
  return Wrapped(
      "Host's part   ", "              ",
      fmt::format("{} a transfer, {} after a pause; {} a flush, {} after a pause: measured on "
                  "the target and taken out of response and wait",
                  mean(sum.transfer_ns()), mean(sum.transfer_after_pause_ns()),
                  mean(sum.flush_ns()), mean(sum.flush_after_pause_ns())));
}

std::string Conditions(const ScoreReport& report) {
  std::string text;
  text += Wrapped("Trace         ", "              ", report.trace_name);
  text += "  SHA-256     " + report.trace_hash + "\n";
  if (!report.piece.empty()) text += Wrapped("Piece         ", "              ", report.piece);
  if (report.sample) {
    const SampleReport& sample = *report.sample;
    text += Wrapped(
        "Sample        ", "              ",
        fmt::format("{} of {} windows, {} of {} I/Os that somebody waits for, seed {}; "
                    "the score is an estimate for the whole, the interval includes "
                    "the draw",
                    FormatCount(sample.design.stratum_of.size()), FormatCount(sample.windows),
                    FormatCount(report.segmentation.foreground()), FormatCount(sample.foreground),
                    sample.seed));
  }
  text += Wrapped("Target        ", "              ", TargetNames(report));
  for (const std::string& one : report.shared) {
    text +=
        Wrapped("Shared        ", "              ", one + ": their I/Os go to the same addresses");
  }
  text += "State         " + report.state + "\n";
  text += Wrapped("Rule          ", "              ", report.rule);
  text += Wrapped("Reference     ", "              ", report.reference + " = 1000");
  if (!report.host.empty()) text += Wrapped("Host          ", "              ", report.host);
  text += HostPartText(report);
  if (report.lost_events > 0) {
    text += fmt::format("Lost events   {}{}\n", FormatCount(report.lost_events),
                        report.loss_accepted ? ", accepted by --accept-loss" : "");
  }
  return text;
}

double GeometricMean(const std::vector<SegmentCosts>& costs, size_t m) {
  double sum = 0;
  for (const SegmentCosts& cost : costs) sum += std::log(cost[m]);
  return std::exp(sum / static_cast<double>(costs.size()));
}

std::string CostTable(const ScoreReport& report) {
  if (report.cycles.empty() || report.reference_costs.empty()) return "";
  static constexpr std::array kNames = {"foreground wait", "work at max speed"};
  const std::vector<SegmentCosts> drive = ReferenceOf(report.cycles);
  std::string text = fmt::format(
      "\n{:<38}weight    reference        drive    ratio\n",
      report.segmentation.segments.size() == 1 ? std::string("Cost of the one segment")
      : report.sample
          ? fmt::format("Cost, geometric mean of {} windows", report.segmentation.segments.size())
          : fmt::format("Cost, geometric mean of {} segments",
                        report.segmentation.segments.size()));
  for (size_t m = 0; m < kCosts; ++m) {
    const double reference_ns = GeometricMean(report.reference_costs, m);
    const double drive_ns = GeometricMean(drive, m);
    text += fmt::format("  {:<36}{:>6.2f} {:>12} {:>12} {:>8}\n", kNames[m], kWeights[m],
                        FormatDurationNs(static_cast<int64_t>(reference_ns)),
                        FormatDurationNs(static_cast<int64_t>(drive_ns)),
                        FormatNumber(reference_ns / drive_ns));
  }
  return text;
}

std::string SensitivityLine(const ScoreReport& report) {
  if (!report.score) return "";
  double low = report.score->score;
  double high = low;
  for (const Score::Variant& variant : report.score->variants) {
    low = std::min(low, variant.score);
    high = std::max(high, variant.score);
  }
  return fmt::format("With any weight at half or one and a half: {} to {}, {}\n", ScoreDigits(low),
                     ScoreDigits(high),
                     report.score->rank_changes ? "ON BOTH SIDES of 1000" : "same side of 1000");
}

std::string DerivedText(const ScoreReport& report) {
  const DerivedFigures& derived = report.derived;
  const auto figure = [](const std::optional<double>& value, std::string_view unit) {
    return value ? FormatNumber(*value) + std::string(unit) : std::string("n/a");
  };
  std::string text = "\nDerived figures, none of them in the score\n";
  text += fmt::format("  {:<44}{:>20}\n", "average data rate (bytes / busy time)",
                      figure(derived.data_rate_mb_s(), " MB/s"));
  text += fmt::format("  {:<44}{:>20}\n", "access time (mean service)",
                      figure(derived.access_time_us(), " us"));
  text += fmt::format("  {:<44}{:>20}\n", "PCMark 10's form, sqrt(MB/s / ms)",
                      figure(derived.pcmark_form(), ""));
  text += fmt::format("  {:<44}{:>20}\n", "at max speed", figure(derived.max_iops(), " IOPS"));
  text += fmt::format("  {:<44}{:>20}\n", "at max speed", figure(derived.max_mb_s(), " MB/s"));
  text += fmt::format("  {:<44}{:>20}\n", "average transfer",
                      figure(derived.mean_transfer_bytes(), " B"));
  text += "\n" + LatencyHeading("Waiting runs");
  if (derived.read_response().count() > 0) {
    text += LatencyRow("  read R", derived.read_response());
    text += LatencyRow("  read V", derived.read_service());
  }
  if (derived.write_response().count() > 0) {
    text += LatencyRow("  write R", derived.write_response());
    text += LatencyRow("  write V", derived.write_service());
  }
  text += "  R = response, from due to complete; V = service, from issue to complete\n";
  return text;
}

std::string RunTable(const ScoreReport& report) {
  if (report.runs.empty()) return "";
  static constexpr const char* kRow = "{:<19} {:>9} {:>10} {:>13} {:>10} {:>11}{}\n";
  std::string text =
      "\n" + fmt::format(kRow, "Run", "I/Os", "wall", "lateness p99", "max", "service p50", "");
  const auto cell = [](const std::optional<int64_t>& ns) {
    return ns ? FormatDurationNs(*ns) : std::string("n/a");
  };
  for (const ScoredRun& run : report.runs) {
    text += fmt::format(kRow, "  " + run.label, FormatCount(run.outcome.completed()),
                        FormatDurationNs(run.outcome.wall_ns()),
                        cell(run.lateness.MeaningfulPercentileNs(kP99)),
                        cell(run.lateness.max_ns()), cell(run.service.MeaningfulPercentileNs(kP50)),
                        run.repeated                  ? " r"
                        : run.invalid_reasons.empty() ? ""
                                                      : " !");
  }
  if (!report.repeated.empty()) {
    text += "  r: of a cycle that was measured again and does not count\n";
  }
  return text;
}

}  // namespace

std::vector<std::string> ScoreNotes(const ScoreReport& report) {
  // Of an invalid score the runs may be left out of the figures; whether they read is not known.
  const bool reads = report.cycles.empty() || report.derived.read_service().count() > 0;
  return TargetNotes({report.targets.begin(), report.targets.end()}, report.state, reads,
                     report.sample.has_value());
}

std::string ScoreText(const ScoreReport& report) {
  std::string text = Headline(report) + TrendText(report) + NotesText(report) +
                     RepeatedText(report) + VerdictLine(report) + WaitLine(report) +
                     Conditions(report) + CostTable(report) + SensitivityLine(report);
  if (report.segmentation.all_is_foreground) {
    text += "The trace marks no I/O as waited for: all its writes count as such.\n";
  }
  if (report.sample) {
    text += "\n" + Wrapped("", "",
                           "All that follows is of the windows drawn, and holds more of "
                           "the heavy ones than the whole: it tells what the drive did in "
                           "them, not what one waits for in the whole.");
  }
  return text + ResponseTable(report) + RunTable(report) + DerivedText(report);
}

}  // namespace blktape
