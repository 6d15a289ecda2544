#include "replay/prepare/prepare.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/quantity.h"
#include "base/units.h"
#include "format/trace_reader.h"
#include "host/system_view.h"
#include "replay/plan/plan.h"
#include "replay/plan/record_stream.h"
#include "replay/prepare/block_set.h"
#include "replay/prepare/prepare_journal.h"
#include "replay/prepare/reads_before_writes.h"
#include "replay/setup.h"
#include "replay/target/queue_setting.h"
#include "replay/target/queue_settings.h"
#include "replay/target/target.h"

namespace blktape {
namespace {

constexpr uint64_t kFillBytes = 1 << 20;      // size of a write of the sequential fill
constexpr uint64_t kDiscardBytes = 64 << 20;  // size of a discard
constexpr uint32_t kDepth = 32;
constexpr int64_t kSaveEveryNs = 2 * kNanosPerSecond;
// After a crash, a write that was in flight may be missing although later ones are done. So a
// resumed phase repeats this much.
constexpr uint64_t kRedoBytes = uint64_t{1} << 30;

struct Step {
  Op op;
  uint64_t offset_bytes;
  uint64_t bytes;
};
// Fills in the next step; false if there is none.
using Steps = std::function<bool(Step*)>;

class StepStream : public RecordStream {
 public:
  StepStream(Steps steps, std::string name) : steps_(std::move(steps)) {
    header_.set_source("generator");
    header_.set_generator(std::move(name));
    header_.add_devices()->set_name("target");
  }
  Result<bool> Next(IoRecord* record, uint64_t* ordinal) override {
    Step step{};
    if (!steps_(&step)) return false;
    *record = IoRecord{};
    record->op = step.op;
    record->lba = Lba(step.offset_bytes / kSectorBytes);
    record->bytes = step.bytes;
    record->queue_ns = 0;
    *ordinal = next_++;
    return true;
  }
  const proto::Header& header() const override { return header_; }

 private:
  const Steps steps_;
  proto::Header header_;
  uint64_t next_ = 0;
};

// Covers [begin, end) with `op`, piece by piece in sequence.
Steps Sweep(Op op, uint64_t begin_bytes, uint64_t end_bytes, uint64_t piece_bytes) {
  return [=, at = begin_bytes](Step* step) mutable {
    if (at >= end_bytes) return false;
    *step = {op, at, std::min(piece_bytes, end_bytes - at)};
    at += step->bytes;
    return true;
  };
}

class Preparation {
 public:
  Preparation(const PrepareOptions& options, const std::atomic<bool>& stop,
              const std::function<void(const PrepareProgress&)>& progress)
      : options_(options), stop_(stop), progress_(progress) {}

  Result<PrepareReport> Run() {
    const int64_t began_ns = Clock::Monotonic()->NowNs();
    RETURN_IF_ERROR(Open());
    // Applied once for the whole preparation, so that all rounds are measured under the same
    // settings.
    ASSIGN_OR_RETURN(const std::unique_ptr<QueueSettingsScope> queue,
                     QueueSettingsScope::Apply({disk_}, options_.replay.queue_settings));
    report_.settings_changed = queue->changed();
    RETURN_IF_ERROR(options_.state == PrepareOptions::State::kUsed ? MakeUsed() : MakeFresh());
    RETURN_IF_ERROR(Idle());
    report_.settings_not_restored = queue->Restore();
    if (!options_.progress_path.empty()) unlink(options_.progress_path.c_str());
    report_.took_ns = Clock::Monotonic()->NowNs() - began_ns;
    return report_;
  }

 private:
  Status Open() {
    ASSIGN_OR_RETURN(const std::unique_ptr<Target> target,
                     Target::Open(options_.target_path,
                                  {.overwrite = options_.replay.overwrite,
                                   .identity = options_.replay.IdentityAt(options_.target_path)}));
    identities_ = {{options_.target_path, target->identity()}};
    const std::string& name = target->description().name();
    disk_ = DiskOfPartition(MachineView(), name).value_or(name);
    if (!options_.replay.queue_settings.empty() && !target->is_block_device()) {
      return Status(StatusCode::kInvalidArgument,
                    options_.target_path + " is a file: it has no queue of its own to set");
    }
    const uint64_t block_bytes = target->logical_block_bytes();
    span_bytes_ =
        std::min(options_.span_bytes.value_or(target->size_bytes()), target->size_bytes()) /
        block_bytes * block_bytes;
    if (span_bytes_ < BlockSet::kBlockBytes) {
      return Status(StatusCode::kFailedPrecondition,
                    options_.target_path + ": there is nothing to prepare");
    }
    can_discard_ = target->abilities().discard;
    const bool used = options_.state == PrepareOptions::State::kUsed;
    journal_.target =
        fmt::format("{} {} {} {} span {}", options_.target_path, target->description().serial(),
                    target->size_bytes(), used ? "used" : "fresh", span_bytes_);
    if (!used) {
      const ReplayOptions& trace = options_.replay;
      journal_.target += " for " + (trace.records ? trace.records->name : trace.trace_path);
    }
    for (const QueueSetting& setting : options_.replay.queue_settings) {
      journal_.target += " " + setting.name + "=" + setting.value;
    }
    if (options_.progress_path.empty()) return OkStatus();
    Result<PrepareJournal> kept = LoadPrepareJournal(options_.progress_path);
    if (kept.status().code() == StatusCode::kNotFound) return OkStatus();
    RETURN_IF_ERROR(kept.status());
    if (kept->target != journal_.target) {
      return Status(StatusCode::kFailedPrecondition,
                    fmt::format("{} belongs to another preparation ({})\n"
                                "  try:  remove it to begin anew",
                                options_.progress_path, kept->target));
    }
    journal_ = *std::move(kept);
    report_.resumed = true;
    report_.rounds_iops = journal_.rounds_iops;
    resume_phase_ = journal_.phase;
    return OkStatus();
  }

  Status Save(const std::string& phase, uint64_t done_bytes) {
    if (options_.progress_path.empty()) return OkStatus();
    journal_.phase = phase;
    journal_.done_bytes = done_bytes;
    journal_.rounds_iops = report_.rounds_iops;
    return SavePrepareJournal(options_.progress_path, journal_);
  }

  // Whether a phase was done before this run. For the phase to resume, also how far it came.
  bool DoneBefore(const std::string& phase, uint64_t* resume_at) {
    *resume_at = 0;
    if (resume_phase_.empty()) return false;
    if (resume_phase_ != phase) return true;
    resume_phase_.clear();
    *resume_at = journal_.done_bytes;
    return false;
  }

  std::optional<int64_t> LeftAfter(const ReplayProgress& now, uint64_t bytes_per_second,
                                   uint64_t whole_bytes) const {
    if (!then_ns_) return std::nullopt;
    if (whole_bytes == 0) {
      return *then_ns_ + std::max<int64_t>(0, options_.round_ns - now.elapsed_ns);
    }
    const uint64_t left_bytes = whole_bytes - std::min(now.bytes, whole_bytes);
    return LeastLeftNs(left_bytes + then_bytes_, bytes_per_second, *then_ns_);
  }

  Result<proto::ReplayOutcome> Replay(ReplayOptions run, const std::string& phase,
                                      const std::function<Status(uint64_t done_bytes)>& save,
                                      uint64_t whole_bytes) {
    run.mappings = {{"", options_.target_path}};
    run.identities = identities_;
    run.engine = options_.replay.engine;
    // Open() was allowed to write to this target, so its content from then on is ours.
    run.overwrite = true;
    run.rule = TimingRule::kQueueDepth;
    run.queue_depth = kDepth;
    run.order_overlaps = false;
    int64_t saved_ns = Clock::Monotonic()->NowNs();
    Status save_status;
    const auto tell = [&](const ReplayProgress& now) {
      if (progress_) {
        const double seconds = std::max(1e-9, static_cast<double>(now.elapsed_ns) / 1e9);
        const auto speed = static_cast<uint64_t>(static_cast<double>(now.bytes) / seconds);
        progress_({.phase = phase,
                   .fraction = whole_bytes == 0 ? now.fraction
                                                : static_cast<double>(now.bytes) /
                                                      static_cast<double>(whole_bytes),
                   .bytes_per_second = speed,
                   .least_left_ns = LeftAfter(now, speed, whole_bytes)});
      }
      const int64_t now_ns = Clock::Monotonic()->NowNs();
      if (!save || now_ns - saved_ns < kSaveEveryNs || !save_status.ok()) return;
      saved_ns = now_ns;
      save_status = save(now.bytes - std::min(now.bytes, kRedoBytes));
    };
    ASSIGN_OR_RETURN(const proto::ReplayOutcome outcome, RunReplay(run, stop_, tell));
    RETURN_IF_ERROR(save_status);
    if (outcome.stopped_early()) {
      // All issued I/Os are complete.
      if (save && outcome.errors() == 0) RETURN_IF_ERROR(save(outcome.issued_bytes()));
      return Status(stop_ ? StatusCode::kCancelled : StatusCode::kIoError,
                    phase + ": " + outcome.stop_reason());
    }
    return outcome;
  }

  // Runs one phase that sweeps over [0, whole_bytes) and can be resumed at any place.
  Status SweepPhase(const std::string& phase, uint64_t whole_bytes,
                    const std::function<Steps(uint64_t from)>& steps, uint64_t* total) {
    uint64_t from = 0;
    if (DoneBefore(phase, &from)) return OkStatus();
    RETURN_IF_ERROR(Save(phase, from));
    ReplayOptions run;
    run.records = ReplayOptions::Records{.name = phase, .open = [&] {
                                           return Result<std::unique_ptr<RecordStream>>(
                                               std::make_unique<StepStream>(steps(from), phase));
                                         }};
    const auto save = [&](uint64_t done) { return Save(phase, from + done); };
    ASSIGN_OR_RETURN(const proto::ReplayOutcome outcome,
                     Replay(run, phase, save, whole_bytes - from));
    *total += outcome.issued_bytes();
    return OkStatus();
  }

  // Of the rounds that it takes at the least, after so many.
  int64_t RoundsNs(size_t done) const {
    const auto least = std::min<size_t>(kSteadyWindow, options_.max_rounds);
    return done >= least ? 0 : static_cast<int64_t>(least - done) * options_.round_ns;
  }

  Status MakeUsed() {
    for (uint32_t pass = 1; pass <= options_.fill_passes; ++pass) {
      then_bytes_ = (options_.fill_passes - pass) * span_bytes_;
      then_ns_ = RoundsNs(report_.rounds_iops.size()) + options_.idle_ns;
      RETURN_IF_ERROR(SweepPhase(
          fmt::format("fill {} of {}", pass, options_.fill_passes), span_bytes_,
          [this](uint64_t from) {
            return Sweep(Op::kWrite, from / kFillBytes * kFillBytes, span_bytes_, kFillBytes);
          },
          &report_.filled_bytes));
    }
    // This run resumes either these rounds or the idle time after them.
    resume_phase_.clear();
    while (true) {
      report_.window = JudgeSteadyState(report_.rounds_iops);
      report_.steady = report_.window.steady;
      if (report_.steady || report_.rounds_iops.size() >= options_.max_rounds) return OkStatus();
      const size_t round = report_.rounds_iops.size() + 1;
      then_ns_ = RoundsNs(round) + options_.idle_ns;
      RETURN_IF_ERROR(Save("random writes", 0));
      ReplayOptions run;
      run.workload = WorkloadSpec{.read_share = 0,
                                  .span_bytes = span_bytes_,
                                  .align_bytes = BlockSet::kBlockBytes,
                                  .seed = round};
      run.duration_ns = options_.round_ns;
      ASSIGN_OR_RETURN(
          const proto::ReplayOutcome outcome,
          Replay(run, fmt::format("random 4 KiB writes, round {}", round), nullptr, 0));
      report_.rounds_iops.push_back(static_cast<double>(outcome.completed()) * 1e9 /
                                    static_cast<double>(std::max<int64_t>(outcome.wall_ns(), 1)));
    }
  }

  Status MakeFresh() {
    if (!can_discard_) {
      return Status(
          StatusCode::kFailedPrecondition,
          options_.target_path +
              ": cannot discard, so it cannot be made fresh\n  try:  --state used, or score "
              "--state as-is");
    }
    // Done first: a trace that does not fit is refused before the target's content changes.
    const bool has_trace = !options_.replay.trace_path.empty() || options_.replay.records;
    ReadsBeforeWrites reads;
    if (has_trace) {
      ASSIGN_OR_RETURN(reads, FindReadsBeforeWrites());
    }
    RETURN_IF_ERROR(SweepPhase(
        "discard", span_bytes_,
        [this](uint64_t from) {
          return Sweep(Op::kDiscard, from / kDiscardBytes * kDiscardBytes, span_bytes_,
                       kDiscardBytes);
        },
        &report_.discarded_bytes));
    if (!has_trace) return OkStatus();
    const BlockSet& blocks = reads.blocks();
    then_ns_ = options_.idle_ns;
    return SweepPhase(
        "write what is read first", blocks.size() * BlockSet::kBlockBytes,
        [this, &blocks](uint64_t from) -> Steps {
          // `from` counts bytes of the set, not of the target.
          return [this, &blocks, skip = from / BlockSet::kBlockBytes,
                  at = uint64_t{0}](Step* step) mutable {
            uint64_t first = 0;
            uint64_t end = 0;
            while (blocks.NextRun(at, kFillBytes / BlockSet::kBlockBytes, &first, &end)) {
              at = end;
              const uint64_t skipped = std::min(skip, end - first);
              skip -= skipped;
              first += skipped;
              if (first == end) continue;
              const uint64_t begin_bytes = first * BlockSet::kBlockBytes;
              const uint64_t end_bytes = std::min(end * BlockSet::kBlockBytes, span_bytes_);
              if (begin_bytes >= end_bytes) return false;
              *step = {Op::kWrite, begin_bytes, end_bytes - begin_bytes};
              return true;
            }
            return false;
          };
        },
        &report_.prefilled_bytes);
  }

  // Only the part of the trace that goes to this target; its other devices are left out.
  Result<ReplayOptions> OptionsOfTrace() const {
    ReplayOptions trace = options_.replay;
    if (trace.mappings.empty()) trace.mappings = {{"", options_.target_path}};
    // However the replay handles operations that the target lacks: only the blocks read matter
    // here.
    trace.unsupported = "skip";
    trace.align = true;
    if (trace.mappings.size() > 1 || trace.mappings[0].device.empty()) return trace;
    ASSIGN_OR_RETURN(const std::unique_ptr<TraceReader> reader,
                     TraceReader::Open(trace.trace_path));
    const std::string ours = trace.mappings[0].device;
    for (const proto::Device& device : reader->header().devices()) {
      if (device.name() != ours) trace.mappings.push_back({device.name(), "none"});
    }
    return trace;
  }

  Result<ReadsBeforeWrites> FindReadsBeforeWrites() {
    if (progress_) progress_({.phase = "reading the trace", .least_left_ns = {}});
    ASSIGN_OR_RETURN(const ReplayOptions trace, OptionsOfTrace());
    ASSIGN_OR_RETURN(const ReplaySetup setup, SetUpReplay(trace, stop_));
    Plan plan(setup.stream.get(), setup.plan);
    ReadsBeforeWrites reads;
    PlannedIo io;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, plan.Next(&io));
      if (!more) return reads;
      if (stop_.load(std::memory_order_relaxed)) return Status(StatusCode::kCancelled, "stopped");
      if (io.kind == PlannedIo::Kind::kIo) {
        reads.Add(io.op, io.offset_bytes, io.bytes);
      }
    }
  }

  Status Idle() {
    RETURN_IF_ERROR(Save("idle", 0));
    Clock* clock = Clock::Monotonic();
    const int64_t start_ns = clock->NowNs();
    for (int64_t now_ns = start_ns; now_ns < start_ns + options_.idle_ns; now_ns = clock->NowNs()) {
      if (stop_.load(std::memory_order_relaxed)) {
        return Status(StatusCode::kCancelled, "idle: interrupted");
      }
      if (progress_) {
        progress_({.phase = "idle",
                   .fraction = static_cast<double>(now_ns - start_ns) /
                               static_cast<double>(options_.idle_ns),
                   .bytes_per_second = 0,
                   .least_left_ns = start_ns + options_.idle_ns - now_ns});
      }
      clock->SleepUntilNs(std::min(now_ns + kNanosPerSecond / 2, start_ns + options_.idle_ns));
    }
    return OkStatus();
  }

  const PrepareOptions& options_;
  const std::atomic<bool>& stop_;
  const std::function<void(const PrepareProgress&)>& progress_;
  PrepareReport report_;
  PrepareJournal journal_;
  // Of the phases after this one: bytes at this one's speed, and then the rest; absent: not known.
  uint64_t then_bytes_ = 0;
  std::optional<int64_t> then_ns_;
  std::string resume_phase_;  // all phases before it are done
  // The target's identity, because each of the many runs opens it again.
  std::map<std::string, std::string> identities_;
  std::string disk_;  // the target's disk: itself, or the disk that it is a partition of
  uint64_t span_bytes_ = 0;
  bool can_discard_ = false;
};

}  // namespace

std::optional<int64_t> LeastLeftNs(uint64_t bytes, uint64_t bytes_per_second, int64_t then_ns) {
  if (bytes == 0) return then_ns;
  if (bytes_per_second == 0) return std::nullopt;
  const double seconds = static_cast<double>(bytes) / static_cast<double>(bytes_per_second);
  constexpr double kLongestS = 1e9;
  return then_ns + static_cast<int64_t>(std::min(seconds, kLongestS) * 1e9);
}

Result<PrepareReport> RunPrepare(const PrepareOptions& options, const std::atomic<bool>& stop,
                                 const std::function<void(const PrepareProgress&)>& progress) {
  return Preparation(options, stop, progress).Run();
}

}  // namespace blktape
