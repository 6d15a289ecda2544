#include "replay/replayer.h"

#include <sys/resource.h>
#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/units.h"
#include "base/version.h"
#include "format/trace_writer.h"
#include "host/drive_health.h"
#include "host/stolen_time.h"
#include "host/system_view.h"
#include "replay/engine/drive_model.h"
#include "replay/engine/engine_factory.h"
#include "replay/engine/engine_probe.h"
#include "replay/host_measure.h"
#include "replay/issue/buffer_arena.h"
#include "replay/issue/feed.h"
#include "replay/issue/issue_lanes.h"
#include "replay/issue/issue_totals.h"
#include "replay/issue/issuer.h"
#include "replay/issue/realtime.h"
#include "replay/outcome/payload.h"
#include "replay/outcome/result_recorder.h"
#include "replay/outcome/verifier.h"
#include "replay/outcome/write_ledger.h"
#include "replay/payload_fill.h"
#include "replay/plan/host_part.h"
#include "replay/plan/plan.h"
#include "replay/progress_meter.h"
#include "replay/run.h"
#include "replay/setup.h"
#include "replay/target/queue_settings.h"

namespace blktape {
namespace {

constexpr int64_t kLeadNs = 2 * kNanosPerMilli;  // between the last preparation and the first due
constexpr std::chrono::milliseconds kProgressEvery{500};

int64_t CpuNs() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& time) {
    return int64_t{time.tv_sec} * kNanosPerSecond + int64_t{time.tv_usec} * kNanosPerMicro;
  };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

proto::Header ResultHeader(const ReplaySetup& setup, const Engine& engine, int64_t start_ns) {
  proto::Header header;
  header.set_tool_version(kVersion);
  header.set_source("replay");
  utsname system{};
  if (uname(&system) == 0) {
    header.set_host(system.nodename);
    header.set_kernel(system.release);
  }
  for (const proto::Device& device : setup.descriptions) *header.add_devices() = device;
  header.mutable_start()->set_monotonic_ns(start_ns);
  header.mutable_start()->set_wall_ns(WallNowNs());
  *header.mutable_replay() = setup.named;
  header.mutable_replay()->set_engine(std::string(engine.name()));
  std::string mode = engine.mode();
  for (const auto& target : setup.targets) mode += "; " + target->access();
  if (!setup.engine_reason.empty()) mode += "; auto: " + setup.engine_reason;
  header.mutable_replay()->set_engine_mode(mode);
  return header;
}

Result<std::unique_ptr<TraceWriter>> CreateResult(const ReplayOptions& options,
                                                  const ReplaySetup& setup, const Engine& engine,
                                                  int64_t start_ns) {
  const proto::Header header = ResultHeader(setup, engine, start_ns);
  if (options.observer != nullptr) options.observer->OnHeader(header);
  if (options.result_path.empty()) return std::unique_ptr<TraceWriter>();
  // A result's frames are smaller than a recording's: two of them are held, with all else, within
  // 64 MiB.
  return TraceWriter::Create(options.result_path, header, {.records_per_frame = 16384});
}

std::function<void(const IoRecord&)> ObserveBy(ResultObserver* observer) {
  if (observer == nullptr) return {};
  return [observer](const IoRecord& record) { observer->OnRecord(record); };
}

// For LatenessSplit: in a closed replay I/Os are not issued in the order of the plan.
std::vector<uint32_t> SplitDepths(const ReplayOptions& options, std::vector<uint32_t> depths) {
  if (options.rule == TimingRule::kClosed) std::ranges::fill(depths, 0);
  return depths;
}

void ReportPlan(const Plan& plan, const RecordStream& stream, const ReplayOptions& options,
                proto::ReplayOutcome* outcome) {
  const PlanCounts& counts = plan.counts();
  outcome->set_planned(counts.planned);
  if (counts.copies > 0) outcome->mutable_commits()->set_copies(counts.copies);
  for (const auto& [reason, count] : counts.skipped) (*outcome->mutable_skipped())[reason] = count;
  for (const auto& [what, count] : counts.emulated) (*outcome->mutable_emulated())[what] = count;
  if (options.remap != "refuse") outcome->set_remapped(counts.remapped);
  if (options.align) outcome->set_widened(counts.widened);
  if (options.idle_cap_ns) outcome->set_idle_cut_ns(plan.idle_cut_ns());
  if (options.rule == TimingRule::kMaxOrder || options.rule == TimingRule::kClosed)
    outcome->set_ungated(counts.ungated);
  outcome->set_trace_lost_events(stream.lost_events());
}

void StopEarly(const std::string& reason, proto::ReplayOutcome* outcome) {
  outcome->set_stopped_early(true);
  outcome->set_stop_reason(reason);
}

void ReportIssue(const IssueTotals& totals, uint64_t issued, proto::ReplayOutcome* outcome) {
  outcome->set_issued(issued);
  outcome->set_wall_ns(totals.last_complete_ns - totals.first_due_ns);
  outcome->set_issuer_busy_max_share_ppm(static_cast<int64_t>(totals.busy_share_max * 1e6));
  outcome->set_overlaps_ordered(totals.overlaps_ordered);
  outcome->set_stalled_submissions(totals.stalled_submissions);
  outcome->set_stalled_completions(totals.stalled_completions);
  outcome->set_done_within_call(totals.done_within_call);
  outcome->set_woken_completions(totals.woken_completions);
  outcome->set_wake_ups(totals.wake_ups.count());
  if (const auto p50_ns = totals.wake_ups.Quantile(0.5)) outcome->set_wake_up_p50_ns(*p50_ns);
  if (const auto p99_ns = totals.wake_ups.Quantile(0.99)) outcome->set_wake_up_p99_ns(*p99_ns);
  if (totals.commits.recorded > 0) {
    outcome->mutable_commits()->set_recorded(totals.commits.recorded);
    outcome->mutable_commits()->set_written(totals.commits.written);
    outcome->mutable_commits()->set_left_out(totals.commits.left_out);
  }
  if (totals.issued_by_reserve) outcome->set_issued_by_reserve(*totals.issued_by_reserve);
  if (totals.stopped_early) StopEarly(totals.stop_reason, outcome);
}

void ReportHostParts(const std::vector<HostPart>& parts, proto::ReplayOutcome* outcome) {
  for (size_t i = 0; i < parts.size(); ++i) {
    proto::HostPart* const part = outcome->add_host_parts();
    part->set_target(static_cast<uint32_t>(i));
    part->set_transfer_ns(parts[i].transfer.at_once_ns);
    part->set_flush_ns(parts[i].flush.at_once_ns);
    part->set_transfer_after_pause_ns(parts[i].transfer.after_pause_ns);
    part->set_flush_after_pause_ns(parts[i].flush.after_pause_ns);
  }
}

Status FinishResult(TraceWriter* writer, const proto::ReplayOutcome& outcome, int64_t end_ns) {
  if (writer == nullptr) return OkStatus();
  proto::Summary summary;
  *summary.mutable_replay() = outcome;
  summary.mutable_end()->set_monotonic_ns(end_ns);
  summary.mutable_end()->set_wall_ns(WallNowNs());
  return writer->Finish(summary);
}

// In one thread, on a clock that jumps from event to event.
Result<proto::ReplayOutcome> RunVirtual(const ReplayOptions& options, ReplaySetup* setup,
                                        const std::atomic<bool>& stop) {
  FakeClock clock(0);
  const uint32_t depth = ChooseDepth(options, *setup);
  EngineOptions engine_options;
  engine_options.depth = depth;
  engine_options.clock = &clock;
  ASSIGN_OR_RETURN(engine_options.drive, DriveModelNamed(options.simulated_drive));
  ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, OpenEngine("simulated", engine_options));
  ASSIGN_OR_RETURN(const std::unique_ptr<TraceWriter> writer,
                   CreateResult(options, *setup, *engine, 0));
  ResultRecorder recorder(writer.get(), SplitDepths(options, {depth}), ObserveBy(options.observer));
  Plan plan(setup->stream.get(), setup->plan);
  InlineFeed feed(&plan);

  struct Sink : IssueSink {
    explicit Sink(ResultRecorder* r) : recorder(r) {}
    void Done(const IssuedIo& io) override {
      if (status.ok()) status = recorder->Add(io);
    }
    ResultRecorder* recorder;
    Status status;
  } sink(&recorder);

  IssueCounters counters;
  IssuerOptions issuer_options = IssuerOptionsOf(options, depth);
  issuer_options.spin_ns = 0;
  Issuer issuer(engine.get(), &clock, &feed, &sink, &counters, StopFlags{&stop}, issuer_options);
  RETURN_IF_ERROR(issuer.Run(0));
  RETURN_IF_ERROR(feed.status());
  RETURN_IF_ERROR(sink.status);
  RETURN_IF_ERROR(recorder.Flush());

  proto::ReplayOutcome outcome;
  ReportPlan(plan, *setup->stream, options, &outcome);
  // A thread wakes in no time on this clock.
  IssueTotals totals = issuer.totals();
  totals.woken_completions = 0;
  totals.wake_ups = {};
  ReportIssue(totals, counters.issued.load(), &outcome);
  recorder.Report(&outcome);
  RETURN_IF_ERROR(FinishResult(writer.get(), outcome, clock.NowNs()));
  return outcome;
}

// What targets and CPUs went through in a run.
class HealthWatch {
 public:
  explicit HealthWatch(const std::vector<std::unique_ptr<Target>>& targets)
      : targets_(targets), cpu_throttles_(CpuThrottles()) {
    for (const auto& target : targets) before_.push_back(target->Health());
  }

  void Report(proto::ReplayOutcome* outcome) const {
    for (size_t i = 0; i < targets_.size(); ++i) {
      const DriveHealth& before = before_[i];
      const DriveHealth after = targets_[i]->Health();
      if (!before.temperature && !after.temperature && !after.throttles) continue;
      proto::DriveCondition* const condition = outcome->add_conditions();
      condition->set_target(static_cast<uint32_t>(i));
      if (before.temperature) condition->set_temperature_before(*before.temperature);
      if (after.temperature) condition->set_temperature_after(*after.temperature);
      if (after.temperature_limit) condition->set_temperature_limit(*after.temperature_limit);
      if (before.throttles && after.throttles && *after.throttles >= *before.throttles) {
        condition->set_throttles(*after.throttles - *before.throttles);
      }
      if (before.throttled_s && after.throttled_s && *after.throttled_s >= *before.throttled_s) {
        condition->set_throttled_s(*after.throttled_s - *before.throttled_s);
      }
    }
    const std::optional<uint64_t> cpu_now = CpuThrottles();
    if (cpu_throttles_ && cpu_now && *cpu_now >= *cpu_throttles_) {
      outcome->set_cpu_throttles(*cpu_now - *cpu_throttles_);
    }
  }

 private:
  const std::vector<std::unique_ptr<Target>>& targets_;
  std::vector<DriveHealth> before_;
  const std::optional<uint64_t> cpu_throttles_;
};

// What is known of the length before the first I/O.
ProgressMeter::Length FindLength(const ReplayOptions& options, const ReplaySetup& setup,
                                 const std::atomic<bool>& stop) {
  ProgressMeter::Length length{
      .limit_ns = options.duration_ns, .schedule_ns = {}, .expected = {}, .ios = setup.records};
  const bool timed = options.rule == TimingRule::kTimed;
  if (timed && !options.idle_cap_ns) {
    if (setup.span_ns) {
      length.schedule_ns =
          static_cast<int64_t>(static_cast<double>(*setup.span_ns) / options.speed);
    }
    return length;
  }
  const bool thinks = IsPunctual(options.rule) || options.keep_think_time;
  // A generator makes its I/Os anew, and a replay without an end has no length.
  if (!thinks || options.loops == 0 || options.workload) return length;
  Result<ExpectedTimes> expected = FindExpectedTimes(options, setup.plan, stop);
  // What cannot be read, and a stop, the replay itself tells in its place.
  if (!expected.ok()) return length;
  length.expected = *std::move(expected);
  if (timed) length.schedule_ns = length.expected.total_ns();
  return length;
}

uint64_t SectorsOf(const proto::ReplayOutcome& outcome) {
  return outcome.issued_bytes() / kSectorBytes;
}

// The ledger of a verification is large; it goes where the result goes.
std::string LedgerFolder(const ReplayOptions& options) {
  const std::filesystem::path folder = std::filesystem::path(options.result_path).parent_path();
  return folder.empty() ? "." : folder.string();
}

Status SweepAndReport(Verifier* verifier, const ReplaySetup& setup, const std::atomic<bool>& stop,
                      proto::ReplayOutcome* outcome) {
  const Status swept = verifier->Sweep(setup.targets, stop);
  if (swept.code() == StatusCode::kCancelled) {
    if (!outcome->stopped_early()) StopEarly(swept.message(), outcome);
  } else {
    RETURN_IF_ERROR(swept);
  }
  verifier->Report(outcome);
  return OkStatus();
}

// Sets the queues of the targets' disks, and describes the targets as they are from then on.
Result<std::unique_ptr<QueueSettingsScope>> SetQueues(const ReplayOptions& options,
                                                      ReplaySetup* setup) {
  std::vector<std::string> disks;
  for (const std::unique_ptr<Target>& target : setup->targets) {
    const std::string& name = target->description().name();
    const std::string disk = DiskOfPartition(MachineView(), name).value_or(name);
    if (std::find(disks.begin(), disks.end(), disk) == disks.end()) disks.push_back(disk);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<QueueSettingsScope> scope,
                   QueueSettingsScope::Apply(disks, options.queue_settings));
  if (options.queue_settings.empty()) return scope;
  for (size_t i = 0; i < setup->targets.size(); ++i) {
    setup->targets[i]->RefreshQueueSettings();
    setup->descriptions[i] = setup->targets[i]->description();
    *setup->named.mutable_targets(static_cast<int>(i)) = setup->descriptions[i];
  }
  for (const std::string& one : scope->changed()) setup->named.add_settings_changed(one);
  return scope;
}

Result<proto::ReplayOutcome> RunReal(const ReplayOptions& options, ReplaySetup* setup,
                                     const std::atomic<bool>& stop,
                                     const std::function<void(const ReplayProgress&)>& progress) {
  Clock* clock = Clock::Monotonic();
  ProgressMeter::Length length;
  if (progress) {
    length = FindLength(options, *setup, stop);
  }
  ProgressMeter meter(std::move(length));
  // Before the engine, so that it is drained before the settings go back, however this ends.
  ASSIGN_OR_RETURN(const std::unique_ptr<QueueSettingsScope> queues, SetQueues(options, setup));
  EngineOptions engine_options;
  engine_options.depth = ChooseDepth(options, *setup);
  const uint64_t buffer_bytes = ChooseBufferBytes(options, *setup->stream);
  const uint64_t read_buffer_bytes =
      ChooseReadBufferBytes(options, engine_options.depth, buffer_bytes);
  ASSIGN_OR_RETURN(BufferArena arena,
                   BufferArena::Create(buffer_bytes, engine_options.depth * read_buffer_bytes));
  engine_options.arena = arena.memory();
  engine_options.flushes_keep_their_place = IsPunctual(options.rule);
  engine_options.submission_thread = options.submission_thread;
  engine_options.polled_completion = options.polled_completion;
  for (const auto& target : setup->targets) engine_options.targets.push_back(target.get());
  std::string engine_name = options.engine;
  if (engine_name == "auto") {
    // Probed as it will run.
    const RealtimeScope awake({.punctual = false, .limit_idle_states = options.realtime});
    ASSIGN_OR_RETURN(const EngineChoice choice, ChooseEngine(engine_options.targets));
    engine_name = choice.engine;
    setup->engine_reason = choice.reason;
  }
  ASSIGN_OR_RETURN(
      const std::unique_ptr<IssueLanes> lanes,
      IssueLanes::Open(engine_name, engine_options, options.threads, HasReserve(options)));
  ASSIGN_OR_RETURN(const std::unique_ptr<TraceWriter> writer,
                   CreateResult(options, *setup, lanes->engine(), clock->NowNs()));
  ASSIGN_OR_RETURN(const int64_t own_cost_ns, MeasureOwnCostNs());
  const RealtimeScope::Wish wish{.punctual = options.realtime && IsPunctual(options.rule),
                                 .limit_idle_states = options.realtime};
  const int64_t poll_ns =
      ChoosePollNs(options, setup->targets, std::thread::hardware_concurrency());
  if (options.rule == TimingRule::kClosed) {
    ASSIGN_OR_RETURN(
        setup->plan.host_parts,
        MeasureHostParts(engine_name, setup->targets, arena.memory().data(), poll_ns, wish, stop));
  }

  Plan plan(setup->stream.get(), setup->plan);
  // Recorded work comes in bursts, as when a file is written back: what lies prepared is on time.
  // At full speed the next I/Os are better kept in the processor's cache.
  const bool timed = IsPunctual(options.rule);
  if (timed) arena.TouchAll();
  const uint64_t ahead_bytes = timed ? arena.capacity_bytes() / 4 * 3 : arena.capacity_bytes() / 4;
  const uint64_t refill_bytes = timed ? ahead_bytes / 8 * 7 : ahead_bytes / 2;
  IssuerOptions issuer_options = IssuerOptionsOf(options, lanes->engine().depth());
  issuer_options.poll_ns = poll_ns;
  issuer_options.read_buffers = arena.extra();
  issuer_options.read_buffer_bytes = read_buffer_bytes;
  ThreadedFeed feed(&plan, &arena, MakePayloadFill(options),
                    {.ahead_bytes = ahead_bytes,
                     .refill_bytes = refill_bytes,
                     .unbuffered_read_bytes = read_buffer_bytes,
                     .lanes = lanes->count(),
                     .router = lanes->RouteBy(options.order_overlaps),
                     .gives_way = !timed});
  ResultRecorder recorder(writer.get(), SplitDepths(options, lanes->depths()),
                          ObserveBy(options.observer));
  recorder.TakeOut(setup->plan.host_parts);
  std::optional<Verifier> verifier;
  if (options.verify) {
    ASSIGN_OR_RETURN(
        WriteLedger ledger,
        WriteLedger::Create(LedgerFolder(options), static_cast<uint32_t>(setup->targets.size())));
    verifier.emplace(std::move(ledger), Payload::CheckStamp);
  }
  std::atomic<bool> halt = false;
  RecorderThread recorder_thread(
      [&](uint32_t lane, const IssuedIo& io) -> Status {
        if (verifier) {
          const Status checked = verifier->Completed(io);
          feed.Return(lane, io.buffer, io.bytes);
          RETURN_IF_ERROR(checked);
        }
        return recorder.Add(io);
      },
      lanes->count(), &halt, !timed);

  feed.Start();
  while (!feed.primed() && !stop.load()) clock->SleepUntilNs(clock->NowNs() + kNanosPerMilli / 4);
  const HealthWatch health(setup->targets);
  const SectorWatch watch(setup->targets);
  const StolenTime stolen;
  const int64_t cpu_before_ns = CpuNs();
  lanes->Start(clock, {.issuer = issuer_options,
                       .wish = wish,
                       .lead_ns = kLeadNs,
                       .stop = {.by_user = &stop, .by_failure = &halt},
                       .feed = &feed,
                       // What was read is looked at before its buffer goes back.
                       .returns_buffers = !verifier,
                       .recorder = &recorder_thread});
  const int64_t start_ns = clock->NowNs();
  while (!lanes->EndWithin(kProgressEvery)) {
    if (!progress) continue;
    const IssueLanes::Live live = lanes->ReadLive();
    const int64_t elapsed_ns = clock->NowNs() - start_ns;
    progress({.fraction = meter.Fraction(elapsed_ns, live.issued),
              .elapsed_ns = elapsed_ns,
              .issued = live.issued,
              .completed = live.completed,
              .errors = live.errors,
              .in_flight = live.in_flight,
              .bytes = live.bytes,
              .lateness_max_ns = live.lateness_max_ns});
  }
  const Status issued = lanes->Join();
  const std::optional<int64_t> stolen_ns = stolen.Ns();
  const Status recorded = recorder_thread.Join();
  feed.Stop();
  RETURN_IF_ERROR(recorded);
  RETURN_IF_ERROR(recorder.Flush());

  proto::ReplayOutcome outcome;
  ReportPlan(plan, *setup->stream, options, &outcome);
  ReportIssue(lanes->totals(), lanes->ReadLive().issued, &outcome);
  recorder.Report(&outcome);
  if (!issued.ok()) StopEarly(issued.message(), &outcome);
  if (!feed.status().ok()) StopEarly(feed.status().message(), &outcome);
  outcome.set_cpu_ns(CpuNs() - cpu_before_ns);
  if (stolen_ns) outcome.set_stolen_ns(*stolen_ns);
  outcome.set_null_engine_ns(own_cost_ns);
  ReportHostParts(setup->plan.host_parts, &outcome);
  for (const std::string& one : lanes->granted()) outcome.add_host_granted(one);
  if (const std::optional<uint64_t> foreign = watch.Foreign(SectorsOf(outcome))) {
    outcome.set_foreign_sectors(*foreign);
  }
  health.Report(&outcome);
  if (verifier) RETURN_IF_ERROR(SweepAndReport(&*verifier, *setup, stop, &outcome));
  for (const std::string& one : queues->Restore()) outcome.add_settings_not_restored(one);
  RETURN_IF_ERROR(FinishResult(writer.get(), outcome, clock->NowNs()));
  return outcome;
}

}  // namespace

Result<proto::ReplayOutcome> RunReplay(const ReplayOptions& options, const std::atomic<bool>& stop,
                                       const std::function<void(const ReplayProgress&)>& progress) {
  ASSIGN_OR_RETURN(ReplaySetup setup, SetUpReplay(options, stop));
  RETURN_IF_ERROR(HashTrace(options, &setup));
  if (options.engine == "simulated") return RunVirtual(options, &setup, stop);
  return RunReal(options, &setup, stop, progress);
}

Result<ReplayPreview> PreviewReplay(const ReplayOptions& options, bool whole,
                                    const std::atomic<bool>& stop) {
  ASSIGN_OR_RETURN(const ReplaySetup setup, SetUpReplay(options, stop));
  ReplayPreview preview;
  preview.rule = setup.named.rule();
  preview.targets = setup.descriptions;
  for (const auto& target : setup.targets) preview.identities[target->path()] = target->identity();
  preview.shared = {setup.named.shared().begin(), setup.named.shared().end()};
  for (const QueueSetting& setting : options.queue_settings) {
    preview.settings.push_back(setting.name + "=" + setting.value);
  }
  preview.recorded_ns = setup.span_ns;
  if (!whole) return preview;
  Plan plan(setup.stream.get(), setup.plan);
  PlannedIo io;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, plan.Next(&io));
    if (!more) break;
    if (stop.load(std::memory_order_relaxed)) return Status(StatusCode::kCancelled, "stopped");
    if (options.rule == TimingRule::kTimed) preview.duration_ns = io.offset_ns;
    if (options.duration_ns && preview.duration_ns > *options.duration_ns) break;
  }
  const PlanCounts& counts = plan.counts();
  preview.planned = counts.planned;
  preview.planned_bytes = counts.planned_bytes;
  for (int op = 0; op < kOpCount; ++op) {
    if (counts.planned_by_op[op] == 0) continue;
    preview.planned_by_op[OpName(static_cast<Op>(op))] = counts.planned_by_op[op];
  }
  preview.skipped = counts.skipped;
  preview.emulated = counts.emulated;
  preview.remapped = counts.remapped;
  preview.widened = counts.widened;
  preview.idle_cut_ns = plan.idle_cut_ns();
  return preview;
}

Result<uint64_t> FootprintEndBytes(const ReplayOptions& options, const std::atomic<bool>& stop) {
  ASSIGN_OR_RETURN(const Footprint footprint, FindFootprint(options, stop));
  uint64_t end_bytes = 0;
  for (const DeviceFootprint& device : footprint.devices) {
    end_bytes = std::max(end_bytes, device.end_bytes);
  }
  return end_bytes;
}

}  // namespace blktape
