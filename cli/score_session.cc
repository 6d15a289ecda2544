#include "cli/score_session.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "analysis/invalid_reason.h"
#include "analysis/measured_reference.h"
#include "analysis/profile.h"
#include "analysis/run_costs.h"
#include "analysis/score.h"
#include "analysis/segments.h"
#include "analysis/validity.h"
#include "base/byte_stream.h"
#include "base/file.h"
#include "base/sha256.h"

namespace blktape {
namespace {

class Session {
 public:
  Session(const ScoreSessionOptions& options, const ReplayFunction& replay, Clock* clock,
          const std::atomic<bool>& stop, const ScoreSessionEvents& events)
      : options_(options), replay_(replay), clock_(clock), stop_(stop), events_(events) {}

  Result<ScoreReport> Run() {
    RETURN_IF_ERROR(ReadTrace());
    RETURN_IF_ERROR(FindReference());
    if (events_.on_begin) events_.on_begin(EstimateNs());
    for (uint64_t cycle = 1; Counted(cycle) <= MostCycles() && !stop_.load(); ++cycle) {
      RETURN_IF_ERROR(RunCycle(cycle));
      if (PreciseEnough()) break;
    }
    if (stop_.load()) {
      Invalid({.rule = 1, .text = "the score was stopped before its cycles were done", .run = {}});
    }
    return std::move(report_);
  }

 private:
  void Invalid(InvalidReason reason) { report_.invalid_reasons.push_back(std::move(reason)); }
  static InvalidReason Of(const std::string& run, InvalidReason reason) {
    reason.run = run;
    return reason;
  }

  // Of so many cycles, those that count.
  uint64_t Counted(uint64_t cycles) const { return cycles - report_.repeated.size(); }

  Status ReadTrace() {
    ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, OpenForReading(options_.trace_path));
    ASSIGN_OR_RETURN(report_.trace_hash, Sha256Hex(source.get()));
    ASSIGN_OR_RETURN(const Profile recording, ProfileTrace(options_.trace_path));
    ASSIGN_OR_RETURN(report_.segmentation, CutTrace(options_.trace_path));
    report_.trace_name = std::filesystem::path(options_.trace_path).filename().string();
    report_.state = "as-is";
    report_.lost_events = recording.lost_events;
    report_.loss_accepted = options_.loss_accepted;
    report_.recording_ns =
        std::max(recording.recorded_ns.value_or(0), report_.segmentation.observed_ns);
    ordered_ = recording.all.q2c.count() + recording.all.d2c.count() > 0;
    // Known before the first run, which may take a day: nothing is run for an invalid score.
    for (const InvalidReason& reason : WhyTraceInvalid(recording, options_.loss_accepted)) {
      return Status(StatusCode::kFailedPrecondition,
                    options_.trace_path + ": " + reason.Sentence() +
                        "; nothing was run\n  try:  --accept-loss to score what is there, which "
                        "the report names");
    }
    report_.rule = "score " + std::to_string(kScoreVersion) + ": timed x1, " +
                   (ordered_ ? std::string("max order")
                             : "max qd=" + std::to_string(kDepthWithoutOrder) +
                                   " as the trace tells no completions");
    if (options_.unsupported != "fail") {
      report_.rule += ", unsupported operations: " + options_.unsupported;
    }
    for (const QueueSetting& setting : options_.queue_settings) {
      report_.rule += ", " + setting.name + "=" + setting.value;
    }
    return OkStatus();
  }

  Status FindReference() {
    if (!options_.reference_folder.empty()) {
      ASSIGN_OR_RETURN(const std::string json,
                       ReadFile(options_.reference_folder + "/report.json"));
      ASSIGN_OR_RETURN(MeasuredReference measured, ParseReference(json, report_.trace_hash));
      if (measured.costs.size() != report_.segmentation.segments.size()) {
        return Status(StatusCode::kDataLoss,
                      options_.reference_folder + "/report.json has other segments than the trace");
      }
      report_.reference = measured.name + ", measured (" + options_.reference_folder + ")";
      report_.reference_costs = measured.costs;
      report_.reference_wait_ns = measured.wait_ns;
      measured_ = std::move(measured);
      return OkStatus();
    }
    report_.reference = "simulated drive, version " + std::to_string(kScoreVersion);
    const auto run = [this](bool timed) {
      ReplayOptions replay = Common(timed);
      replay.engine = "simulated";
      replay.depth = kReferenceDepth;
      return RunOnce(replay, timed ? "reference-timed" : "reference-max",
                     timed ? "reference, timed" : "reference, max");
    };
    ASSIGN_OR_RETURN(const RunCosts timed, run(true));
    ASSIGN_OR_RETURN(const RunCosts max, run(false));
    ASSIGN_OR_RETURN(report_.reference_costs, CycleCosts(timed, max));
    report_.reference_wait_ns = timed.wait_ns;
    reference_max_ns_ = max.profile.observed_ns;
    return OkStatus();
  }

  // Before the second run: all runs of one score go by one engine, that of the first, which becomes
  // part of the rule. Only then is it known whether a measured reference goes by the same rule.
  void SettleRule(const std::string& engine) {
    options_.engine = engine;
    report_.rule += ", " + engine;
    if (!measured_) return;
    // Another engine or queues set otherwise: a fair question, but not the same one.
    if (measured_->rule == report_.rule) {
      reference_log_scores_ = measured_->log_scores;
    } else {
      report_.reference += ", by the rule " + measured_->rule;
    }
    if (measured_->interval_too_wide) report_.reference += ", whose own interval is TOO WIDE";
  }

  ReplayOptions Common(bool timed) const {
    ReplayOptions replay;
    replay.trace_path = options_.trace_path;
    replay.unsupported = options_.unsupported;
    replay.state = report_.state;
    replay.on_error = "continue";
    if (!timed) {
      replay.rule = ordered_ ? TimingRule::kMaxOrder : TimingRule::kQueueDepth;
      if (!ordered_) replay.queue_depth = kDepthWithoutOrder;
    }
    return replay;
  }

  Result<RunCosts> RunOnce(ReplayOptions replay, const std::string& name,
                           const std::string& label) {
    replay.result_path = options_.folder + "/" + name + ".tape";
    if (events_.on_run) events_.on_run(label);
    const auto progress = [this, &label](const ReplayProgress& now) {
      if (events_.on_progress) events_.on_progress(label, now);
    };
    const Result<proto::ReplayOutcome> outcome = replay_(replay, stop_, progress);
    if (!outcome.ok()) return outcome.status();
    return MeasureRun(replay.result_path, report_.segmentation);
  }

  Result<RunCosts> RunOnTarget(uint64_t cycle, bool timed) {
    clock_->SleepUntilNs(clock_->NowNs() + options_.pause_ns);
    ReplayOptions replay = Common(timed);
    replay.mappings.push_back({.device = "", .target_path = options_.target_path});
    replay.identities = options_.identities;
    replay.engine = options_.engine;
    replay.queue_settings = options_.queue_settings;
    // After the first run what lies on the target is that run's own.
    replay.overwrite = options_.overwrite || !report_.runs.empty();
    replay.cycle = static_cast<uint32_t>(cycle);
    const std::string number = std::to_string(cycle);
    const std::string name = "cycle-" + number + (timed ? "-timed" : "-max");
    const std::string label = "cycle " + number + (timed ? ", timed" : ", max");
    ASSIGN_OR_RETURN(RunCosts costs, RunOnce(replay, name, label));
    if (report_.runs.empty()) SettleRule(costs.profile.header.replay().engine());
    Note(label, name + ".tape", timed, costs);
    return costs;
  }

  // Puts a run into the report, with what makes it invalid. Whether that counts is not known yet.
  void Note(const std::string& label, const std::string& file, bool timed, const RunCosts& costs) {
    const proto::Header& header = costs.profile.header;
    ScoredRun run{.label = label,
                  .file = file,
                  .rule = header.replay().rule(),
                  .engine = header.replay().engine(),
                  .outcome = {},
                  .lateness = costs.profile.lateness.host,
                  .service = costs.profile.data.d2c,
                  .busy_ns = costs.profile.busy_ns,
                  .wait_ns = costs.wait_ns,
                  .invalid_reasons = WhyRunInvalid(report_.segmentation, costs, timed)};
    if (costs.profile.summary) run.outcome = costs.profile.summary->replay();
    if (!manifest_) {
      manifest_ = header;
      for (const proto::Device& target : header.replay().targets()) {
        report_.targets.push_back(target);
      }
      const auto& shared = header.replay().shared();
      report_.shared.assign(shared.begin(), shared.end());
    }
    for (InvalidReason& reason : WhyTargetsDiffer(*manifest_, header)) {
      run.invalid_reasons.push_back(std::move(reason));
    }
    report_.runs.push_back(std::move(run));
  }

  // A run whose cycle counts, as the report has it.
  void Count(const ScoredRun& run, bool timed, const RunCosts& costs) {
    for (const InvalidReason& reason : run.invalid_reasons) Invalid(Of(run.label, reason));
    if (timed) {
      report_.derived.AddTimed(costs.profile);
    } else {
      report_.derived.AddMax(costs.profile, run.outcome);
    }
  }

  // Whether the cycle of these two runs, the last ones, is to be measured again.
  bool Repeats(uint64_t cycle, const std::vector<SegmentCosts>& costs) {
    RepeatedCycle repeated{.number = cycle, .reasons = {}, .costs = costs};
    const std::span<ScoredRun> runs = std::span(report_.runs).last(2);
    for (const ScoredRun& run : runs) {
      if (!SpoiledFromOutside(run.invalid_reasons)) return false;
      for (const InvalidReason& reason : run.invalid_reasons) {
        repeated.reasons.push_back(Of(run.label, reason));
      }
    }
    if (repeated.reasons.empty() || report_.repeated.size() >= options_.cycles) return false;
    for (ScoredRun& run : runs) run.repeated = true;
    if (events_.on_repeat) events_.on_repeat(repeated);
    report_.repeated.push_back(std::move(repeated));
    return true;
  }

  Status RunCycle(uint64_t cycle) {
    ASSIGN_OR_RETURN(const RunCosts timed, RunOnTarget(cycle, /*timed=*/true));
    if (stop_.load()) {
      Count(report_.runs.back(), /*timed=*/true, timed);
      return OkStatus();
    }
    ASSIGN_OR_RETURN(const RunCosts max, RunOnTarget(cycle, /*timed=*/false));
    Result<std::vector<SegmentCosts>> costs = CycleCosts(timed, max);
    if (!stop_.load() && costs.ok() && Repeats(cycle, *costs)) return OkStatus();
    Count(*(report_.runs.end() - 2), /*timed=*/true, timed);
    Count(report_.runs.back(), /*timed=*/false, max);
    if (stop_.load()) return OkStatus();
    if (!costs.ok()) {
      Invalid(
          {.rule = 1, .text = costs.status().message(), .run = "cycle " + std::to_string(cycle)});
      return OkStatus();
    }
    report_.cycles.push_back(std::move(costs).value());
    report_.waits_ns.push_back(timed.wait_ns);
    report_.score = ComputeScore(report_.reference_costs, report_.cycles);
    if (!reference_log_scores_.empty()) {
      report_.comparison = CompareScores(report_.score->log_scores, reference_log_scores_);
    }
    return OkStatus();
  }

  uint64_t MostCycles() const {
    return options_.until_precise ? std::max(options_.cycles, kMostCycles) : options_.cycles;
  }

  bool PreciseEnough() const {
    return options_.until_precise && report_.cycles.size() >= options_.cycles && report_.score &&
           report_.score->half_width_ln.value_or(1) <= kHalfWidthGoal;
  }

  int64_t EstimateNs() const {
    const int64_t cycle_ns = report_.segmentation.observed_ns +
                             reference_max_ns_.value_or(report_.segmentation.observed_ns / 2) +
                             2 * options_.pause_ns;
    return static_cast<int64_t>(options_.cycles) * cycle_ns;
  }

  ScoreSessionOptions options_;
  const ReplayFunction& replay_;
  Clock* const clock_;
  const std::atomic<bool>& stop_;
  const ScoreSessionEvents& events_;
  ScoreReport report_;
  bool ordered_ = true;  // the trace tells completions
  std::optional<int64_t> reference_max_ns_;
  std::optional<MeasuredReference> measured_;  // absent: the reference is simulated
  std::vector<double> reference_log_scores_;   // of a measured reference by the same rule
  std::optional<proto::Header> manifest_;      // of the first run on the target
};

}  // namespace

Result<ScoreReport> RunScoreSession(const ScoreSessionOptions& options,
                                    const ReplayFunction& replay, Clock* clock,
                                    const std::atomic<bool>& stop,
                                    const ScoreSessionEvents& events) {
  return Session(options, replay, clock, stop, events).Run();
}

}  // namespace blktape
