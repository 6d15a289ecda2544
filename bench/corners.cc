#include "bench/corners.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "base/quantity.h"
#include "base/units.h"
#include "replay/plan/timing_rule.h"
#include "replay/prepare/prepare.h"
#include "replay/replayer.h"

namespace blktape {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;
constexpr uint64_t kGiB = 1024 * kMiB;
constexpr int64_t kMinuteNs = 60 * kNanosPerSecond;
constexpr uint32_t kFillDepth = 32;
// A step of the series, and the most steps: a test that lasts longer doubles its step.
constexpr int64_t kSeriesStepNs = kNanosPerSecond / 10;
constexpr size_t kMostSeriesSteps = 4096;

using Pattern = WorkloadSpec::Pattern;

struct Shape {
  Pattern pattern = Pattern::kRandom;
  uint64_t block_bytes = 4 * kKiB;
  double read_share = 0;
  uint32_t queue_depth = 1;
  uint64_t span_bytes = 0;
  uint64_t align_bytes = 4 * kKiB;
  CornerPayload payload = {};
  const char* data = nullptr;  // named where the test is about it
  std::optional<int64_t> duration_ns = {};
  std::optional<uint64_t> total_bytes = {};
  const char* condition = "";
};

// Makes the steps of one target.
class Planner {
 public:
  explicit Planner(const CornerOptions& options) : options_(options) {}

  CornerGroup Make(const std::string& name) {
    CornerGroup group{.name = name};
    if (name == "random") {
      Random(&group.steps);
      if (Alignments().size() < 2) {
        group.left_out.push_back("512 B aligned: the target's blocks have " +
                                 FormatBytes(options_.block_bytes));
      }
    }
    if (name == "depth") Depth(&group.steps);
    if (name == "sequential") Sequential(&group.steps);
    if (name == "incompressible") Incompressible(&group.steps);
    if (name == "compressible") Compressible(&group.steps);
    if (name == "fill") Fill(&group.steps);
    if (name == "state") State(&group.steps);
    if (name == "torture") Torture(&group.steps);
    return group;
  }

 private:
  // At most `bytes` of the target, whole 128 KiB.
  uint64_t Span(uint64_t bytes) const {
    if (options_.quick) bytes = std::min(bytes, kGiB);
    return std::min(bytes, options_.target_bytes) / (128 * kKiB) * (128 * kKiB);
  }
  uint64_t Whole() const { return Span(options_.target_bytes); }
  int64_t Time(int64_t full_ns, int64_t quick_ns) const {
    return options_.quick ? quick_ns : full_ns;
  }

  CornerStep Measure(const Shape& shape) const {
    CornerStep step{.kind = CornerStep::Kind::kMeasure,
                    .condition = shape.condition,
                    .queue_depth = shape.queue_depth,
                    .payload = shape.payload,
                    .duration_ns = shape.duration_ns};
    WorkloadSpec& workload = step.workload;
    workload.pattern = shape.pattern;
    workload.sizes = {{.bytes = shape.block_bytes}};
    workload.read_share = shape.read_share;
    workload.span_bytes = shape.span_bytes;
    workload.align_bytes = shape.align_bytes;
    if (shape.total_bytes) {
      workload.count = std::max<uint64_t>(1, *shape.total_bytes / shape.block_bytes);
    }
    if (shape.data != nullptr) step.data = shape.data;
    // The condition is told apart from the name.
    const std::vector<std::string> words = ParametersOf(step);
    for (size_t i = 1; i < words.size(); ++i) {
      if (words[i].empty()) continue;
      step.name += (step.name.empty() ? "" : i == 2 ? " " : ", ") + words[i];
    }
    return step;
  }

  CornerStep Whole(CornerStep::Kind kind, const std::string& name, uint64_t from_bytes,
                   uint64_t to_bytes) const {
    CornerStep step{.kind = kind, .name = name, .queue_depth = kFillDepth};
    const uint64_t block_bytes = 128 * kKiB;
    step.workload.pattern = Pattern::kSequential;
    step.workload.sizes = {{.bytes = block_bytes}};
    step.workload.align_bytes = block_bytes;
    step.workload.read_share = 0;
    step.workload.begin_bytes = from_bytes;
    step.workload.span_bytes = to_bytes - from_bytes;
    step.workload.count = (to_bytes - from_bytes) / block_bytes;
    return step;
  }
  // Reads of what was never written, and writes to it, flatter a drive.
  CornerStep Written(uint64_t bytes) const {
    return Whole(CornerStep::Kind::kFill, "write " + FormatBytes(bytes) + " first", 0, bytes);
  }

  std::vector<uint64_t> Alignments() const {
    if (options_.block_bytes > 512) return {4 * kKiB};
    return {4 * kKiB, 512};
  }

  // Iometer's three kinds of data. "Pseudo-random" there is one buffer of random bytes that every
  // write takes its data from: here every block repeats one of 16.
  void Random(std::vector<CornerStep>* steps) const {
    const uint64_t span = Span(8 * kGiB);
    steps->push_back(Written(span));
    struct Data {
      CornerPayload payload;
      const char* name;
    };
    const Data kinds[] = {{{.repeat = true}, "repeated byte"},
                          {{.dedupe_percent = 100}, "pseudo-random data"},
                          {{}, "random data"}};
    for (const uint64_t align : Alignments()) {
      for (const Data& data : kinds) {
        steps->push_back(Measure({.queue_depth = 3,
                                  .span_bytes = span,
                                  .align_bytes = align,
                                  .payload = data.payload,
                                  .data = data.name,
                                  .duration_ns = Time(3 * kMinuteNs, 5 * kNanosPerSecond)}));
      }
    }
    for (const uint64_t align : Alignments()) {
      steps->push_back(Measure({.read_share = 1,
                                .queue_depth = 3,
                                .span_bytes = span,
                                .align_bytes = align,
                                .duration_ns = Time(3 * kMinuteNs, 5 * kNanosPerSecond)}));
    }
    steps->push_back(Measure({.queue_depth = 32,
                              .span_bytes = span,
                              .duration_ns = Time(3 * kMinuteNs, 5 * kNanosPerSecond)}));
  }

  void Depth(std::vector<CornerStep>* steps) const {
    const uint64_t span = Span(16 * kGiB);
    steps->push_back(Written(span));
    for (const double read_share : {1.0, 0.0}) {
      for (uint32_t depth = 1; depth <= 128; depth *= 2) {
        steps->push_back(Measure({.read_share = read_share,
                                  .queue_depth = depth,
                                  .span_bytes = span,
                                  .duration_ns = Time(kMinuteNs, 3 * kNanosPerSecond)}));
      }
    }
  }

  Shape Stream(double read_share, uint64_t span_bytes) const {
    return {.pattern = Pattern::kSequential,
            .block_bytes = 128 * kKiB,
            .read_share = read_share,
            .span_bytes = span_bytes,
            .align_bytes = 128 * kKiB,
            .duration_ns = Time(kMinuteNs, 5 * kNanosPerSecond)};
  }

  // The write first: the read ends where that did at the latest, as every stream does.
  void Sequential(std::vector<CornerStep>* steps) const {
    steps->push_back(Measure(Stream(0, Whole())));
    steps->push_back(Measure(Stream(1, Whole())));
  }

  // As AS SSD does it: 1 GB of random data in blocks of 16 MiB.
  void Incompressible(std::vector<CornerStep>* steps) const {
    for (const double read_share : {0.0, 1.0}) {
      const uint64_t span = Span(kGiB);
      steps->push_back(Measure({.pattern = Pattern::kSequential,
                                .block_bytes = std::min(16 * kMiB, span),
                                .read_share = read_share,
                                .span_bytes = span,
                                .align_bytes = std::min(16 * kMiB, span),
                                .data = "incompressible",
                                .total_bytes = span}));
    }
  }

  void Compressible(std::vector<CornerStep>* steps) const {
    const uint64_t span = Span(8 * kGiB);
    const std::pair<uint32_t, const char*> kinds[] = {
        {0, "0 % compressible"}, {50, "50 % compressible"}, {100, "100 % compressible"}};
    for (const auto& [percent, name] : kinds) {
      for (const double read_share : {0.0, 1.0}) {
        Shape shape = Stream(read_share, span);
        shape.payload.compressible_percent = percent;
        shape.data = name;
        shape.duration_ns = Time(kMinuteNs / 2, 3 * kNanosPerSecond);
        steps->push_back(Measure(shape));
      }
    }
  }

  void Fill(std::vector<CornerStep>* steps) const {
    const uint64_t whole = Whole();
    steps->push_back(Whole(CornerStep::Kind::kDiscard, "discard all", 0, whole));
    uint64_t filled = 0;
    static constexpr std::pair<int, const char*> kLevels[] = {{25, "25 % full"},
                                                              {50, "50 % full"},
                                                              {75, "75 % full"},
                                                              {90, "90 % full"},
                                                              {100, "100 % full"}};
    for (const auto& [percent, name] : kLevels) {
      const uint64_t level = std::max(
          whole / 100 * static_cast<uint64_t>(percent) / (128 * kKiB) * (128 * kKiB), 128 * kKiB);
      if (level > filled) {
        steps->push_back(
            Whole(CornerStep::Kind::kFill, fmt::format("fill to {} %", percent), filled, level));
      }
      filled = std::max(filled, level);
      steps->push_back(Measure({.queue_depth = 32,
                                .span_bytes = level,
                                .duration_ns = Time(kMinuteNs, 3 * kNanosPerSecond),
                                .condition = name}));
    }
  }

  void Both(const char* condition, bool full, std::vector<CornerStep>* steps) const {
    Shape shape = Stream(0, Whole());
    shape.condition = condition;
    steps->push_back(Measure(shape));
    // A slow drive may not have come as far.
    if (!full) steps->push_back(Written(Span(8 * kGiB)));
    for (const double read_share : {0.0, 1.0}) {
      steps->push_back(Measure({.read_share = read_share,
                                .queue_depth = 32,
                                .span_bytes = Span(8 * kGiB),
                                .duration_ns = Time(kMinuteNs, 5 * kNanosPerSecond),
                                .condition = condition}));
    }
  }
  void State(std::vector<CornerStep>* steps) const {
    steps->push_back(Whole(CornerStep::Kind::kDiscard, "discard all", 0, Whole()));
    Both("new", /*full=*/false, steps);
    steps->push_back(Whole(CornerStep::Kind::kUse, "bring into the state used", 0, Whole()));
    Both("used", /*full=*/true, steps);
  }

  void Torture(std::vector<CornerStep>* steps) const {
    steps->push_back(Written(Whole()));
    Shape stream = Stream(0, Whole());
    stream.condition = "before torture";
    steps->push_back(Measure(stream));
    steps->push_back(Measure({.queue_depth = 32,
                              .span_bytes = Whole(),
                              .duration_ns = Time(20 * kMinuteNs, 30 * kNanosPerSecond),
                              .condition = "torture"}));
    stream.condition = "right after torture";
    steps->push_back(Measure(stream));
    const int64_t idle_ns = Time(10 * kMinuteNs, 10 * kNanosPerSecond);
    steps->push_back({.kind = CornerStep::Kind::kIdle,
                      .name = "leave alone for " + FormatDurationNs(idle_ns),
                      .duration_ns = idle_ns});
    stream.condition = "after a rest";
    steps->push_back(Measure(stream));
  }

  const CornerOptions& options_;
};

// Adds up what completes. Its memory does not grow with the test.
class Meter : public ResultObserver {
 public:
  explicit Meter(CornerResult* result) : result_(result) {
    result_->series_step_ns = kSeriesStepNs;
  }

  void OnHeader(const proto::Header& header) override {
    result_->engine = header.replay().engine();
  }

  void OnRecord(const IoRecord& record) override {
    if (record.error != 0 || !record.issue_ns || !record.complete_ns) return;
    if (!first_ns_) first_ns_ = record.issue_ns;
    last_ns_ = std::max(last_ns_, *record.complete_ns);
    result_->elapsed_ns = last_ns_ - *first_ns_;
    (record.op == Op::kRead ? result_->reads : result_->writes) += 1;
    result_->bytes += record.bytes;
    result_->service_ns.Add(*record.complete_ns - *record.issue_ns);
    AddToSeries(*record.complete_ns - *first_ns_, record.bytes);
  }

 private:
  static void Halve(std::vector<uint64_t>* series) {
    const size_t half = (series->size() + 1) / 2;
    for (size_t i = 0; i < half; ++i) {
      const uint64_t second = 2 * i + 1 < series->size() ? (*series)[2 * i + 1] : 0;
      (*series)[i] = (*series)[2 * i] + second;
    }
    series->resize(half);
  }
  void AddToSeries(int64_t at_ns, uint64_t bytes) {
    auto step = static_cast<size_t>(std::max<int64_t>(at_ns, 0) / result_->series_step_ns);
    while (step >= kMostSeriesSteps) {
      Halve(&result_->series_bytes);
      Halve(&result_->series_ios);
      result_->series_step_ns *= 2;
      step /= 2;
    }
    if (step >= result_->series_bytes.size()) {
      result_->series_bytes.resize(step + 1);
      result_->series_ios.resize(step + 1);
    }
    result_->series_bytes[step] += bytes;
    ++result_->series_ios[step];
  }

  CornerResult* const result_;
  std::optional<int64_t> first_ns_;
  int64_t last_ns_ = INT64_MIN;
};

ReplayOptions OptionsOf(const CornerStep& step, const CornerOptions& corners) {
  ReplayOptions options = corners.replay;
  options.workload = step.workload;
  options.rule = TimingRule::kQueueDepth;
  options.queue_depth = step.queue_depth;
  options.duration_ns = step.duration_ns;
  options.compressible_percent = step.payload.compressible_percent;
  options.dedupe_percent = step.payload.dedupe_percent;
  options.repeat_payload = step.payload.repeat;
  // A span written at random meets itself now and then; a drive must cope with that.
  options.order_overlaps = false;
  return options;
}

// An outcome that makes its figures worthless.
Status Judge(const CornerStep& step, const proto::ReplayOutcome& outcome) {
  if (outcome.errors() > 0 || (outcome.stopped_early() && outcome.issued() == 0)) {
    return Status(
        StatusCode::kUnavailable,
        step.name + ": " +
            (outcome.stopped_early() ? outcome.stop_reason()
                                     : FormatCounted(outcome.errors(), "I/O") + " failed"));
  }
  return OkStatus();
}

class Runner {
 public:
  Runner(const CornerOptions& options, const std::atomic<bool>& stop,
         const std::function<void(const CornerProgress&)>& progress)
      : options_(options), stop_(stop), progress_(progress) {}

  Status Run(const std::string& group, const CornerStep& step, std::vector<CornerResult>* results) {
    ++now_.step;
    now_.text = group + ": " + step.name;
    if (!step.condition.empty()) now_.text += " (" + step.condition + ")";
    Show(0, 0);
    switch (step.kind) {
      case CornerStep::Kind::kMeasure:
        return Measure(group, step, results);
      case CornerStep::Kind::kFill:
        return Replay(OptionsOf(step, options_), step).status();
      case CornerStep::Kind::kDiscard:
        return Prepare(PrepareOptions::State::kFresh, step);
      case CornerStep::Kind::kUse:
        return Prepare(PrepareOptions::State::kUsed, step);
      case CornerStep::Kind::kIdle:
        return Idle(*step.duration_ns);
    }
    return OkStatus();
  }

  void set_steps(uint32_t steps) { now_.steps = steps; }

 private:
  void Show(double fraction, uint64_t bytes_per_second) {
    now_.fraction = fraction;
    now_.bytes_per_second = bytes_per_second;
    if (progress_) progress_(now_);
  }

  Result<proto::ReplayOutcome> Replay(ReplayOptions options, const CornerStep& step) {
    if (!engine_.empty()) options.engine = engine_;
    ASSIGN_OR_RETURN(
        const proto::ReplayOutcome outcome,
        RunReplay(options, stop_, [this](const ReplayProgress& now) {
          const double seconds = static_cast<double>(now.elapsed_ns) / 1e9;
          Show(now.fraction,
               seconds > 0 ? static_cast<uint64_t>(static_cast<double>(now.bytes) / seconds) : 0);
        }));
    if (stop_.load(std::memory_order_relaxed)) return Status(StatusCode::kCancelled, "stopped");
    RETURN_IF_ERROR(Judge(step, outcome));
    return outcome;
  }

  Status Measure(const std::string& group, const CornerStep& step,
                 std::vector<CornerResult>* results) {
    CornerResult result{.group = group, .step = step};
    Meter meter(&result);
    ReplayOptions options = OptionsOf(step, options_);
    options.observer = &meter;
    // A read of what was never written flatters a drive.
    const uint64_t block_bytes = step.workload.sizes.front().bytes;
    const bool stream = step.workload.pattern == Pattern::kSequential && step.duration_ns;
    if (stream && step.workload.read_share > 0 && streamed_bytes_ < step.workload.span_bytes) {
      options.workload->count = std::max<uint64_t>(1, streamed_bytes_ / block_bytes);
    }
    ASSIGN_OR_RETURN(result.outcome, Replay(options, step));
    if (stream && result.writes > 0) streamed_bytes_ = result.writes * block_bytes;
    // All tests of a drive go by the engine that the first chose.
    engine_ = result.engine;
    results->push_back(std::move(result));
    return OkStatus();
  }

  // The simulated and the null engine hold nothing that could be prepared.
  bool HasTarget() const { return !options_.replay.mappings.empty(); }

  Status Prepare(PrepareOptions::State state, const CornerStep& step) {
    if (!HasTarget()) return OkStatus();
    PrepareOptions prepare;
    prepare.state = state;
    prepare.replay = options_.replay;
    if (!engine_.empty()) prepare.replay.engine = engine_;
    prepare.target_path = options_.replay.mappings.front().target_path;
    prepare.span_bytes = step.workload.span_bytes;
    prepare.idle_ns = options_.quick ? kNanosPerSecond : kMinuteNs;
    if (options_.quick) {
      prepare.round_ns = 5 * kNanosPerSecond;
      prepare.max_rounds = 5;
    }
    return RunPrepare(
               prepare, stop_,
               [this](const PrepareProgress& now) { Show(now.fraction, now.bytes_per_second); })
        .status();
  }

  Status Idle(int64_t length_ns) {
    if (!HasTarget()) return OkStatus();
    Clock* clock = Clock::Monotonic();
    const int64_t begin_ns = clock->NowNs();
    while (clock->NowNs() - begin_ns < length_ns) {
      if (stop_.load(std::memory_order_relaxed)) return Status(StatusCode::kCancelled, "stopped");
      clock->SleepUntilNs(clock->NowNs() + kNanosPerSecond / 4);
      Show(static_cast<double>(clock->NowNs() - begin_ns) / static_cast<double>(length_ns), 0);
    }
    return OkStatus();
  }

  const CornerOptions& options_;
  const std::atomic<bool>& stop_;
  const std::function<void(const CornerProgress&)>& progress_;
  CornerProgress now_;
  std::string engine_;           // once chosen
  uint64_t streamed_bytes_ = 0;  // by the last sequential write that was measured
};

}  // namespace

std::vector<std::string> ParametersOf(const CornerStep& step) {
  const WorkloadSpec& workload = step.workload;
  const uint64_t block_bytes = workload.sizes.front().bytes;
  const bool random = workload.pattern == Pattern::kRandom;
  return {
      step.condition,
      FormatBytes(block_bytes) + (random ? " random" : " sequential"),
      workload.read_share > 0 ? "read" : "write",
      "QD " + std::to_string(step.queue_depth),
      "span " + FormatBytes(workload.span_bytes),
      random && workload.align_bytes != 4 * kKiB ? FormatBytes(workload.align_bytes) + " aligned"
                                                 : "",
      step.data,
      step.duration_ns ? FormatDurationNs(*step.duration_ns)
                       : FormatBytes(workload.count.value_or(0) * block_bytes),
  };
}

const std::vector<std::string>& CornerGroups() {
  static const std::vector<std::string> groups = {"random",         "depth",        "sequential",
                                                  "incompressible", "compressible", "fill",
                                                  "state",          "torture"};
  return groups;
}

Result<std::vector<CornerGroup>> PlanCorners(const CornerOptions& options) {
  if (options.target_bytes < kMiB) {
    return Status(
        StatusCode::kInvalidArgument,
        "the target has " + FormatBytes(options.target_bytes) + "; the tests take 1 MiB at least");
  }
  const std::vector<std::string>& all = CornerGroups();
  for (const std::string& name : options.groups) {
    if (std::find(all.begin(), all.end(), name) == all.end()) {
      return Status(StatusCode::kInvalidArgument,
                    "there is no group of tests \"" + name +
                        "\"\n  try:  " + fmt::format("{}", fmt::join(all, ", ")));
    }
  }
  std::vector<CornerGroup> groups;
  Planner planner(options);
  for (const std::string& name : all) {
    const bool wanted =
        options.groups.empty() ||
        std::find(options.groups.begin(), options.groups.end(), name) != options.groups.end();
    if (!wanted) continue;
    groups.push_back(planner.Make(name));
    // What a test before has read may still be in a cache.
    uint64_t seed = options.seed + 100 * static_cast<uint64_t>(&name - all.data());
    for (CornerStep& step : groups.back().steps) step.workload.seed = seed++;
  }
  return groups;
}

CornerCost CostOf(const std::vector<CornerGroup>& groups) {
  CornerCost cost;
  for (const CornerGroup& group : groups) {
    for (const CornerStep& step : group.steps) {
      const uint64_t span_bytes = step.workload.span_bytes;
      if (step.duration_ns) cost.measured_ns += *step.duration_ns;
      if (step.kind == CornerStep::Kind::kFill) cost.written_bytes += span_bytes;
      if (step.kind == CornerStep::Kind::kUse) {
        cost.written_bytes += 2 * span_bytes;
        ++cost.preparations;
      }
    }
  }
  return cost;
}

std::optional<double> CornerResult::iops() const {
  if (elapsed_ns <= 0) return std::nullopt;
  return static_cast<double>(reads + writes) / static_cast<double>(elapsed_ns) * 1e9;
}

std::optional<double> CornerResult::bytes_per_second() const {
  if (elapsed_ns <= 0) return std::nullopt;
  return static_cast<double>(bytes) / static_cast<double>(elapsed_ns) * 1e9;
}

Status RunCorners(const CornerOptions& options, const std::vector<CornerGroup>& groups,
                  const std::atomic<bool>& stop,
                  const std::function<void(const CornerProgress&)>& progress,
                  std::vector<CornerResult>* results) {
  Runner runner(options, stop, progress);
  uint32_t steps = 0;
  for (const CornerGroup& group : groups) steps += static_cast<uint32_t>(group.steps.size());
  runner.set_steps(steps);
  for (const CornerGroup& group : groups) {
    for (const CornerStep& step : group.steps) {
      RETURN_IF_ERROR(runner.Run(group.name, step, results));
    }
  }
  return OkStatus();
}

}  // namespace blktape
