#include "bench/campaign.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "analysis/invalid_reason.h"
#include "analysis/measured_reference.h"
#include "analysis/measured_score.h"
#include "analysis/run_costs.h"
#include "analysis/run_series.h"
#include "analysis/score.h"
#include "analysis/segments.h"
#include "analysis/validity.h"
#include "base/file.h"
#include "base/quantity.h"
#include "bench/campaign_folder.h"
#include "bench/sample.h"
#include "replay/host_measure.h"
#include "replay/plan/kept_blocks.h"

namespace blktape {
namespace {

// "10 s", "250 ms": as typed, without rounding.
std::string Exactly(int64_t ns) {
  if (ns % kNanosPerSecond == 0) return fmt::format("{} s", ns / kNanosPerSecond);
  if (ns % kNanosPerMilli == 0) return fmt::format("{} ms", ns / kNanosPerMilli);
  return fmt::format("{} ns", ns);
}

bool IsSimulated(const std::string& target_path) {
  return target_path.starts_with(kSimulatedTarget);
}

// Where none was named. A file may still have to be made.
std::string DefaultState(const std::string& target_path) {
  std::error_code none;
  const bool drive = IsSimulated(target_path) || std::filesystem::is_block_file(target_path, none);
  return drive ? "as-is" : "fresh";
}

class Campaign {
 public:
  Campaign(const CampaignOptions& options, const CampaignTools& tools,
           const std::atomic<bool>& stop, const CampaignEvents& events)
      : options_(options), tools_(tools), stop_(stop), events_(events) {
    if (options_.state.empty()) options_.state = DefaultState(options_.target_path);
  }

  Result<std::shared_ptr<const ScoredTrace>> Check() {
    RETURN_IF_ERROR(CheckOptions());
    RETURN_IF_ERROR(TakeTrace());
    RETURN_IF_ERROR(CampaignFolder::Check(options_.folder, Question(), options_.reopen));
    if (!options_.reference_folder.empty()) {
      ASSIGN_OR_RETURN(const std::string json,
                       ReadFile(options_.reference_folder + "/report.json"));
      RETURN_IF_ERROR(ParseReference(json, report_.trace_hash).status());
    }
    return options_.trace;
  }

  Result<ScoreReport> Run() {
    RETURN_IF_ERROR(CheckOptions());
    RETURN_IF_ERROR(TakeTrace());
    ASSIGN_OR_RETURN(CampaignFolder folder,
                     CampaignFolder::Open(options_.folder, Question(), options_.reopen));
    folder_ = std::make_unique<CampaignFolder>(std::move(folder));
    const Status done = Measure();
    if (!done.ok()) {
      if (!CampaignTouchedTarget(options_.folder)) folder_->Discard();
      return done;
    }
    return std::move(report_);
  }

 private:
  void Invalid(InvalidReason reason) { report_.invalid_reasons.push_back(std::move(reason)); }
  static InvalidReason Of(const std::string& run, InvalidReason reason) {
    reason.run = run;
    return reason;
  }
  bool simulated() const { return IsSimulated(options_.target_path); }
  RunKind TimedKind() const { return options_.open_loop ? RunKind::kOpen : RunKind::kClosed; }
  static const char* KindName(RunKind kind) {
    return kind == RunKind::kMax ? "max" : kind == RunKind::kOpen ? "open" : "closed";
  }

  // Of so many cycles, those that count.
  uint64_t Counted(uint64_t cycles) const { return cycles - report_.repeated.size(); }

  Status CheckOptions() const {
    const auto invalid = [](const std::string& what) {
      return Status(StatusCode::kInvalidArgument, what);
    };
    if (options_.state != "as-is" && options_.state != "used" && options_.state != "fresh") {
      return invalid("state \"" + options_.state + "\" is none of as-is, used, fresh");
    }
    if (simulated() && options_.state != "as-is") {
      return invalid("a simulated drive begins each run anew and has no other state than as-is");
    }
    if (simulated() && !options_.queue_settings.empty()) {
      return invalid("a simulated drive has no queue to set");
    }
    return OkStatus();
  }

  // Of a campaign that was checked before, what was found then.
  Status TakeTrace() {
    if (!options_.trace) {
      ASSIGN_OR_RETURN(options_.trace, ReadScoredTrace(options_.piece, options_.open_loop,
                                                       options_.loss_accepted, stop_));
    }
    const ScoredTrace& trace = *options_.trace;
    report_.trace_name = std::filesystem::path(options_.piece.trace_path).filename().string();
    report_.trace_hash = trace.hash;
    report_.piece = options_.piece.Name();
    report_.state = options_.state;
    report_.segmentation = trace.segmentation;
    report_.lost_events = trace.lost_events;
    report_.loss_accepted = options_.loss_accepted;
    report_.recording_ns = trace.recording_ns;
    ordered_ = trace.ordered;
    return OkStatus();
  }

  // All of the rule but what the first run on the target tells.
  std::string AskedRule() const {
    std::string rule = fmt::format("score {}: {}", kScoreVersion,
                                   options_.open_loop ? "open loop x1" : "closed loop");
    if (options_.idle_cap_ns) rule += ", idle cap " + Exactly(*options_.idle_cap_ns);
    rule += ordered_
                ? ", max order"
                : fmt::format(", max qd={} as the trace tells no completions", kDepthWithoutOrder);
    if (!report_.piece.empty()) rule += ", " + report_.piece;
    if (options_.budget_ns) {
      rule += fmt::format(", a sample for {} a cycle by seed {}", Exactly(*options_.budget_ns),
                          options_.seed);
    }
    rule += ", " + options_.state;
    if (options_.state != "as-is") {
      rule += options_.prepare_each_cycle ? " before each cycle" : " before the first cycle";
    }
    if (!simulated()) rule += ", pause " + Exactly(options_.pause_ns);
    if (options_.unsupported != "fail") {
      rule += ", unsupported operations: " + options_.unsupported;
    }
    for (const QueueSetting& setting : options_.queue_settings) {
      rule += ", " + setting.name + "=" + setting.value;
    }
    return rule;
  }

  // What decides whether an unfinished campaign in the folder is this one.
  std::string Question() const {
    return fmt::format("{}; {} {}; trace {}; {}, engine {}, reference {}", AskedRule(),
                       options_.published ? "published, first stage" : "cycles", options_.cycles,
                       report_.trace_hash, options_.target_path, options_.engine,
                       options_.reference_folder.empty() ? "simulated" : options_.reference_folder);
  }

  Status Measure() {
    RETURN_IF_ERROR(ChooseSample());
    ASSIGN_OR_RETURN(kept_, FindKeptBlocks(options_.piece, Blocks(), stop_));
    RETURN_IF_ERROR(FindReference());
    if (folder_->resumed() && events_.on_resume) events_.on_resume(RunsDone());
    wanted_ = options_.cycles;
    TellPlan();
    const Status run = RunCycles();
    if (stop_.load() && (run.ok() || run.code() == StatusCode::kCancelled)) {
      Invalid({.rule = 1, .text = "the score was stopped before its cycles were done", .run = {}});
      return OkStatus();
    }
    RETURN_IF_ERROR(run);
    report_.ended_early = report_.cycles.size() < wanted_;
    CampaignState state = folder_->state();
    state.finished = true;
    return folder_->Save(state);
  }

  Status RunCycles() {
    for (uint64_t cycle = 1; Counted(cycle) <= wanted_ && !stop_.load(); ++cycle) {
      RETURN_IF_ERROR(Prepare(cycle));
      if (!report_.invalid_reasons.empty() || stop_.load()) break;
      RETURN_IF_ERROR(RunCycle(cycle));
      TellLeft();
      // More cycles mend nothing: the score stays invalid.
      if (!report_.invalid_reasons.empty()) break;
      EndFirstStage();
    }
    return OkStatus();
  }

  uint64_t RunsDone() const {
    uint64_t runs = 0;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(options_.folder, error)) {
      const std::string name = entry.path().filename().string();
      runs += name.starts_with("cycle-") && name.ends_with(".tape") ? 1 : 0;
    }
    return runs;
  }

  void TellPlan() {
    if (events_.on_plan) events_.on_plan(wanted_, Estimate());
  }

  void TellLeft() {
    if (events_.on_left) events_.on_left(Estimate());
  }

  // Of a published score: its spread alone decides how many cycles there are.
  void EndFirstStage() {
    if (!options_.published || first_stage_over_ || report_.cycles.size() < options_.cycles) return;
    first_stage_over_ = true;
    wanted_ = SteinSampleSize(report_.score->log_scores, kHalfWidthGoal, kMostCycles);
    report_.first_stage = options_.cycles;
    if (wanted_ > options_.cycles) TellPlan();
    Rate();
  }

  // Of the whole piece: measured, or estimated from the sample.
  int64_t WaitOf(const std::vector<SegmentCosts>& costs, const RunCosts& timed) const {
    if (!sample_) return timed.wait_ns;
    return static_cast<int64_t>(EstimateTotal(sample_->design, costs, Cost::kWait));
  }

  void Rate() {
    report_.score = ComputeScore(report_.reference_costs, report_.cycles, report_.first_stage,
                                 sample_ ? &sample_->design : nullptr);
    if (!reference_log_scores_.empty()) {
      report_.comparison = CompareScores(report_.score->log_scores, reference_log_scores_);
    }
  }

  // Runs the simulated drive over the whole piece, and draws windows by what they cost it.
  Status ChooseSample() {
    if (!options_.budget_ns) return OkStatus();
    ASSIGN_OR_RETURN(const WindowCut cut, CutWindows(options_.piece, report_.segmentation, stop_));
    Segmentation whole = std::exchange(report_.segmentation, cut.fine);
    // Two drives of different kind know better than one which windows are heavy.
    std::vector<WindowRuns> drives;
    for (const char* drive : {"reference", "sata-2011"}) {
      const std::string what = std::string("whole-") + drive + "-";
      ASSIGN_OR_RETURN(RunCosts waited, RunSimulated(drive, TimedKind(), what));
      ASSIGN_OR_RETURN(RunCosts max, RunSimulated(drive, RunKind::kMax, what));
      drives.push_back({.waited = std::move(waited), .max = std::move(max)});
    }
    report_.segmentation = std::move(whole);
    const int64_t pauses_ns = simulated() ? 0 : 2 * options_.pause_ns;
    ASSIGN_OR_RETURN(sample_,
                     DrawSample(cut, drives, *options_.budget_ns - pauses_ns, options_.seed));
    if (!sample_) return OkStatus();
    const uint64_t foreground = report_.segmentation.foreground();
    ASSIGN_OR_RETURN(report_.segmentation, CutSample(options_.piece, cut, *sample_, stop_));
    report_.sample = {.design = sample_->design,
                      .windows = cut.segment_of.size(),
                      .foreground = foreground,
                      .budget_ns = *options_.budget_ns,
                      .seed = options_.seed};
    return OkStatus();
  }

  Result<RunCosts> RunSimulated(const char* drive, RunKind kind, const std::string& what) {
    ReplayOptions replay = Common(kind);
    TakeRecords("", &replay);
    replay.engine = "simulated";
    replay.simulated_drive = drive;
    replay.depth = kReferenceDepth;
    const std::string name = "reference-" + what + KindName(kind);
    return RunOnce(replay, name + ".tape", std::string("reference, ") + KindName(kind),
                   /*pause_ns=*/0);
  }

  // What is replayed of the piece.
  std::vector<WindowBlock> Blocks() const {
    if (sample_) return sample_->blocks;
    return {{.first_ordinal = 0, .end_ordinal = UINT64_MAX}};
  }

  // What is replayed on the target at `target_path`: the piece, or the sample of it.
  void TakeRecords(const std::string& target_path, ReplayOptions* replay) const {
    SetPiece(options_.piece, target_path, replay);
    replay->kept = kept_;
    if (!sample_) return;
    replay->trace_path.clear();
    replay->from_ns.reset();
    replay->to_ns.reset();
    replay->records = {.name = report_.trace_name,
                       .open = [piece = options_.piece, blocks = sample_->blocks] {
                         return OpenSample(piece, blocks);
                       }};
  }

  // Costs of other records would make a ratio of what nobody asked.
  Status CheckSameWork(const MeasuredReference& measured) const {
    const auto named = [](const std::string& piece) { return piece.empty() ? "the whole" : piece; };
    const std::string file = options_.reference_folder + "/report.json";
    if (measured.piece != report_.piece) {
      return Status(StatusCode::kFailedPrecondition,
                    fmt::format("{}: the reference was scored on another piece of the trace: {}, "
                                "and here it is {}",
                                file, named(measured.piece), named(report_.piece)));
    }
    const bool same = std::ranges::equal(
        measured.segment_records, report_.segmentation.segments,
        [](const MeasuredScore::RecordRange& theirs, const Segment& ours) {
          return theirs.first == ours.first_ordinal && theirs.end == ours.end_ordinal;
        });
    if (same) return OkStatus();
    return Status(StatusCode::kFailedPrecondition,
                  file + ": the reference was scored on other records of the trace: by " +
                      measured.rule +
                      "\n  try:  the same --budget and --seed for both, or neither for both");
  }

  Status FindReference() {
    if (!options_.reference_folder.empty()) {
      ASSIGN_OR_RETURN(const std::string json,
                       ReadFile(options_.reference_folder + "/report.json"));
      ASSIGN_OR_RETURN(MeasuredReference measured, ParseReference(json, report_.trace_hash));
      RETURN_IF_ERROR(CheckSameWork(measured));
      report_.reference = measured.name + ", measured (" + options_.reference_folder + ")";
      report_.reference_costs = measured.costs;
      report_.reference_wait_ns = measured.wait_ns;
      cycle_ns_ = measured.cycle_ns;
      measured_ = std::move(measured);
      return OkStatus();
    }
    report_.reference = "simulated drive, version 1";
    ASSIGN_OR_RETURN(const RunCosts timed, RunSimulated("reference", TimedKind(), ""));
    ASSIGN_OR_RETURN(const RunCosts max, RunSimulated("reference", RunKind::kMax, ""));
    ASSIGN_OR_RETURN(report_.reference_costs, CycleCosts(timed, max));
    report_.reference_wait_ns = WaitOf(report_.reference_costs, timed);
    cycle_ns_ = timed.profile.observed_ns + max.profile.observed_ns;
    return OkStatus();
  }

  // After the first run on the target: all others go by its engine, which becomes part of the rule
  // with what the target is. Only then is it known whether a measured reference goes by that rule.
  Status SettleRule(const proto::Header& header) {
    options_.engine = header.replay().engine();
    report_.rule = AskedRule() + ", " + options_.engine;
    for (const proto::Device& target : header.replay().targets()) {
      report_.rule += target.is_file() ? ", a file" : simulated() ? "" : ", a device";
      if (!target.is_file() && !simulated() && !options_.open_loop && !takes_host_out_) {
        report_.rule += ", the host's part kept";
      }
      report_.rule += fmt::format("; {} bytes", target.size_bytes());
      if (!target.write_cache().empty()) report_.rule += ", " + target.write_cache();
    }
    if (measured_) {
      // Another engine or queues set otherwise: a fair question, but not the same one.
      if (ProcedureOf(measured_->rule) == ProcedureOf(report_.rule)) {
        reference_log_scores_ = measured_->log_scores;
      } else {
        report_.reference += ", by the rule " + measured_->rule;
      }
      if (measured_->interval_too_wide) report_.reference += ", whose own interval is TOO WIDE";
    }
    if (folder_->state().engine == options_.engine) return OkStatus();
    CampaignState state = folder_->state();
    state.engine = options_.engine;
    return folder_->Save(state);
  }

  ReplayOptions Common(RunKind kind) const {
    ReplayOptions replay;
    replay.unsupported = options_.unsupported;
    replay.state = report_.state;
    replay.on_error = "continue";
    if (kind == RunKind::kMax) {
      replay.rule = ordered_ ? TimingRule::kMaxOrder : TimingRule::kQueueDepth;
      if (!ordered_) replay.queue_depth = kDepthWithoutOrder;
      return replay;
    }
    replay.idle_cap_ns = options_.idle_cap_ns;
    replay.rule = kind == RunKind::kClosed ? TimingRule::kClosed : TimingRule::kTimed;
    return replay;
  }

  // A finished run of this name is not done again.
  Result<RunCosts> RunOnce(ReplayOptions replay, const std::string& file, const std::string& label,
                           int64_t pause_ns) {
    replay.result_path = folder_->PathOf(file);
    ASSIGN_OR_RETURN(const bool done, folder_->HasRun(file));
    if (done) return MeasureRun(replay.result_path, report_.segmentation);
    tools_.clock->SleepUntilNs(tools_.clock->NowNs() + pause_ns);
    if (events_.on_run) events_.on_run(label);
    const auto progress = [this, &label](const ReplayProgress& now) {
      if (events_.on_progress) events_.on_progress(label, now);
    };
    const Result<proto::ReplayOutcome> outcome = tools_.replay(replay, stop_, progress);
    if (!outcome.ok()) return outcome.status();
    return MeasureRun(replay.result_path, report_.segmentation);
  }

  Result<RunCosts> RunOnTarget(uint64_t cycle, RunKind kind) {
    const std::string name = fmt::format("cycle-{}-{}.tape", cycle, KindName(kind));
    const std::string label = fmt::format("cycle {}, {}", cycle, KindName(kind));
    ReplayOptions replay = Common(kind);
    TakeRecords(simulated() ? "" : options_.target_path, &replay);
    replay.identities = options_.identities;
    replay.engine = folder_->state().engine.empty() ? options_.engine : folder_->state().engine;
    if (simulated()) {
      replay.engine = "simulated";
      replay.simulated_drive = options_.target_path.substr(sizeof kSimulatedTarget - 1);
      replay.depth = kReferenceDepth;
    }
    replay.queue_settings = options_.queue_settings;
    replay.overwrite = MayOverwrite();
    RETURN_IF_ERROR(Touch());
    replay.cycle = static_cast<uint32_t>(cycle);
    ASSIGN_OR_RETURN(RunCosts costs,
                     RunOnce(replay, name, label, simulated() ? 0 : options_.pause_ns));
    if (report_.runs.empty()) {
      takes_host_out_ = HostIsTakenOut(costs);
      RETURN_IF_ERROR(SettleRule(costs.profile.header));
    }
    Note(label, name, kind, costs);
    return costs;
  }

  std::string Identity() const {
    const auto found = options_.identities.find(options_.target_path);
    return found == options_.identities.end() ? "" : found->second;
  }

  // Whether a preparation or a run of this campaign has begun on this very target, perhaps in an
  // earlier process.
  bool Touched() const { return !Identity().empty() && folder_->state().touched == Identity(); }

  // What lies on the target may go: by consent, or as this campaign has put it there.
  bool MayOverwrite() const { return options_.overwrite || !report_.runs.empty() || Touched(); }

  Status Touch() {
    if (Identity().empty() || Touched()) return OkStatus();
    CampaignState state = folder_->state();
    state.touched = Identity();
    return folder_->Save(state);
  }

  Status Prepare(uint64_t cycle) {
    if (options_.state == "as-is") return OkStatus();
    if (folder_->state().unsteady) Unsteady();
    if (cycle > 1 && !options_.prepare_each_cycle) return OkStatus();
    const auto& prepared = folder_->state().prepared;
    if (std::find(prepared.begin(), prepared.end(), cycle) != prepared.end()) return OkStatus();
    const std::string label = fmt::format("cycle {}, preparing: {}", cycle, options_.state);
    if (events_.on_run) events_.on_run(label);
    PrepareOptions prepare;
    prepare.state =
        options_.state == "used" ? PrepareOptions::State::kUsed : PrepareOptions::State::kFresh;
    prepare.target_path = options_.target_path;
    prepare.replay.identities = options_.identities;
    prepare.replay.overwrite = MayOverwrite();
    RETURN_IF_ERROR(Touch());
    prepare.replay.queue_settings = options_.queue_settings;
    prepare.replay.engine = options_.engine;
    if (prepare.state == PrepareOptions::State::kFresh) {
      // Of a sample what it reads itself: what the whole would have written before, it does not.
      TakeRecords(options_.target_path, &prepare.replay);
    }
    prepare.progress_path = folder_->PathOf("prepare.json");
    const Result<PrepareReport> report =
        tools_.prepare(prepare, stop_, [this, &label](const PrepareProgress& now) {
          if (events_.on_prepare_progress) events_.on_prepare_progress(label, now);
        });
    if (report.status().code() == StatusCode::kCancelled) return OkStatus();  // and it is told
    if (!report.ok()) return report.status();
    if (!report->resumed) preparation_ns_ = report->took_ns;
    CampaignState state = folder_->state();
    state.prepared.push_back(cycle);
    state.unsteady = prepare.state == PrepareOptions::State::kUsed && !report->steady;
    RETURN_IF_ERROR(folder_->Save(state));
    TellLeft();
    if (state.unsteady) Unsteady();
    return OkStatus();
  }

  void Unsteady() {
    Invalid({.rule = 7,
             .text = "the preparation did not bring the target into a steady state",
             .run = {}});
  }

  static bool HostIsTakenOut(const RunCosts& costs) {
    return costs.profile.summary && costs.profile.summary->replay().host_parts_size() > 0;
  }

  // Puts a run into the report, with what makes it invalid. Whether that counts is not known yet.
  void Note(const std::string& label, const std::string& file, RunKind kind,
            const RunCosts& costs) {
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
                  .host_wait_ns = costs.host_wait_ns,
                  .responses = costs.responses,
                  .series = kind == RunKind::kMax ? RunSeries{} : costs.series,
                  .began_ns = header.start().wall_ns(),
                  .invalid_reasons = WhyRunInvalid(report_.segmentation, costs, kind),
                  .waits = kind != RunKind::kMax};
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
    if (kind == RunKind::kClosed && HostIsTakenOut(costs) != takes_host_out_) {
      run.invalid_reasons.push_back(
          {.rule = 5,
           .text = takes_host_out_
                       ? "the host's part could not be measured for another program's I/O"
                       : "the host's part was measured, unlike that of the first run",
           .run = {}});
    }
    report_.runs.push_back(std::move(run));
  }

  // A run whose cycle counts, as the report has it.
  void Count(const ScoredRun& run, RunKind kind, const RunCosts& costs) {
    for (const InvalidReason& reason : run.invalid_reasons) Invalid(Of(run.label, reason));
    if (kind == RunKind::kMax) {
      report_.derived.AddMax(costs.profile, run.outcome);
    } else {
      report_.derived.AddTimed(costs.profile);
      for (size_t i = 0; i < kWaitClasses; ++i) report_.latencies[i].Merge(costs.latencies[i]);
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
    ASSIGN_OR_RETURN(const RunCosts timed, RunOnTarget(cycle, TimedKind()));
    // What makes the score invalid for good is known: nothing more is run.
    const bool lost = !SpoiledFromOutside(report_.runs.back().invalid_reasons);
    if (stop_.load() || lost) {
      Count(report_.runs.back(), TimedKind(), timed);
      return OkStatus();
    }
    timed_ns_ = timed.profile.observed_ns;
    within_cycle_ = true;
    TellLeft();
    ASSIGN_OR_RETURN(const RunCosts max, RunOnTarget(cycle, RunKind::kMax));
    within_cycle_ = false;
    cycle_ns_ = timed.profile.observed_ns + max.profile.observed_ns;
    Result<std::vector<SegmentCosts>> costs = CycleCosts(timed, max);
    if (!stop_.load() && costs.ok() && Repeats(cycle, *costs)) return OkStatus();
    Count(*(report_.runs.end() - 2), TimedKind(), timed);
    Count(report_.runs.back(), RunKind::kMax, max);
    if (stop_.load()) return OkStatus();
    if (!costs.ok()) {
      Invalid(
          {.rule = 1, .text = costs.status().message(), .run = "cycle " + std::to_string(cycle)});
      return OkStatus();
    }
    report_.cycles.push_back(std::move(costs).value());
    report_.waits_ns.push_back(WaitOf(report_.cycles.back(), timed));
    Rate();
    return OkStatus();
  }

  // Those that are still to be done, of the cycles that are left.
  int64_t PreparationsLeft(uint64_t cycles_left) const {
    if (options_.state == "as-is") return 0;
    const std::vector<uint64_t>& done = folder_->state().prepared;
    const uint64_t first = report_.cycles.size() + report_.repeated.size() + 1;
    int64_t left = 0;
    for (uint64_t cycle = first; cycle < first + cycles_left; ++cycle) {
      if (cycle > 1 && !options_.prepare_each_cycle) break;
      if (std::find(done.begin(), done.end(), cycle) == done.end()) ++left;
    }
    return left;
  }

  CampaignEstimate Estimate() const {
    const uint64_t left = wanted_ - std::min<uint64_t>(wanted_, report_.cycles.size());
    int64_t cycle_ns = cycle_ns_.value_or(report_.segmentation.observed_ns);
    // A closed run alone may take longer than both of the reference's.
    if (within_cycle_) cycle_ns = std::max(cycle_ns, timed_ns_);
    std::error_code none;
    const bool measures_host =
        !options_.open_loop && std::filesystem::is_block_file(options_.target_path, none);
    const int64_t pause_ns = simulated() ? 0 : options_.pause_ns;
    const int64_t before_timed_ns = pause_ns + (measures_host && !simulated() ? kHostMeasureNs : 0);
    CampaignEstimate estimate;
    estimate.ns = static_cast<int64_t>(left) * (cycle_ns + before_timed_ns + pause_ns);
    if (within_cycle_) estimate.ns -= timed_ns_ + before_timed_ns;
    const int64_t preparations = PreparationsLeft(left);
    estimate.plus_preparation = preparations > 0 && !preparation_ns_;
    estimate.ns += preparations * preparation_ns_.value_or(0);
    return estimate;
  }

  CampaignOptions options_;
  const CampaignTools& tools_;
  const std::atomic<bool>& stop_;
  const CampaignEvents& events_;
  std::unique_ptr<CampaignFolder> folder_;
  ScoreReport report_;
  bool ordered_ = true;           // the trace tells completions
  bool takes_host_out_ = false;   // of the first closed run's wait, and so of all
  std::optional<Sample> sample_;  // absent: the whole piece is replayed
  std::shared_ptr<const KeptBlocks> kept_;
  uint64_t wanted_ = 0;  // cycles that count
  bool first_stage_over_ = false;
  std::optional<int64_t> cycle_ns_;            // how long both runs took, of what ran last
  std::optional<int64_t> preparation_ns_;      // how long the last one took
  bool within_cycle_ = false;                  // its first run is done, its second is not:
  int64_t timed_ns_ = 0;                       // how long the first one took
  std::optional<MeasuredReference> measured_;  // absent: the reference is simulated
  std::vector<double> reference_log_scores_;   // of a measured reference by the same rule
  std::optional<proto::Header> manifest_;      // of the first run on the target
};

}  // namespace

Result<std::shared_ptr<const ScoredTrace>> CheckCampaign(const CampaignOptions& options,
                                                         const std::atomic<bool>& stop) {
  const CampaignTools no_tools{};
  const CampaignEvents no_events;
  return Campaign(options, no_tools, stop, no_events).Check();
}

Result<ScoreReport> RunCampaign(const CampaignOptions& options, const CampaignTools& tools,
                                const std::atomic<bool>& stop, const CampaignEvents& events) {
  return Campaign(options, tools, stop, events).Run();
}

bool CampaignTouchedTarget(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name == "prepare.json" || (name.starts_with("cycle-") && name.ends_with(".tape"))) {
      return true;
    }
  }
  return false;
}

}  // namespace blktape
