#include "replay/host_measure.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <thread>

#include "base/clock.h"
#include "base/units.h"
#include "format/io_record.h"
#include "host/block_stat.h"
#include "replay/engine/engine.h"
#include "replay/engine/engine_factory.h"
#include "replay/engine/engine_options.h"
#include "replay/issue/issued_io.h"
#include "replay/issue/issuer.h"
#include "replay/plan/plan.h"
#include "replay/plan/timing_rule.h"

namespace blktape {
namespace {

constexpr int kSamples = 5;
// A disk that others use now and then is measured between.
constexpr int kMostSamples = 3 * kSamples;
constexpr int64_t kSampleNs = 100 * kNanosPerMilli;
constexpr int64_t kPausingSampleNs = 300 * kNanosPerMilli;
static_assert(2 * kSamples * (kSampleNs + kPausingSampleNs) == kHostMeasureNs);
constexpr int64_t kCountedWithinNs = 10 * kNanosPerMilli;
constexpr uint64_t kReadBytes = 4096;
// Coprime to any number of blocks that is not a multiple of it: each read is far from the last.
constexpr uint64_t kStride = 1'000'003;

// One kind of I/O again and again, each `pause_ns` after the end of the one before, for as long as
// the issuer asks.
class OneKindFeed : public PlanFeed {
 public:
  OneKindFeed(Op op, uint64_t target_bytes, std::byte* buffer, int64_t pause_ns)
      : blocks_(target_bytes / kReadBytes) {
    io_.op = op;
    io_.offset_ns = pause_ns;
    io_.gate_slot = 0;
    if (op != Op::kRead) return;
    io_.bytes = kReadBytes;
    io_.buffer = buffer;
  }
  State Peek(PlannedIo** io) override {
    *io = &io_;
    return State::kReady;
  }
  void Pop() override {
    ++io_.sequence;
    io_.required_count = 1;
    if (io_.op == Op::kRead) io_.offset_bytes = io_.sequence * kStride % blocks_ * kReadBytes;
  }
  bool WantsMemory() const override { return false; }

 private:
  const uint64_t blocks_;
  PlannedIo io_;
};

class SummingSink : public IssueSink {
 public:
  void Done(const IssuedIo& io) override {
    ++sample.ios;
    sample.seen_ns += io.complete_ns - io.issue_ns;
  }
  HostSample sample;
};

// Where the driver takes requests, the kernel dates their beginnings and ends.
bool Measurable(const std::unique_ptr<Target>& target) {
  std::error_code ignored;
  return target->is_block_device() && target->direct() && target->size_bytes() >= kReadBytes &&
         std::filesystem::exists(target->disk() + "/mq", ignored);
}

// Absent if an I/O failed or there are no statistics.
Result<std::optional<HostSample>> TakeSample(Engine* engine, Op op, int64_t pause_ns,
                                             const Target& target, std::byte* buffer,
                                             const IssuerOptions& options,
                                             const std::atomic<bool>& stop) {
  Clock* const clock = Clock::Monotonic();
  OneKindFeed feed(op, target.size_bytes(), buffer, pause_ns);
  SummingSink sink;
  IssueCounters counters;
  Issuer issuer(engine, clock, &feed, &sink, &counters, StopFlags{&stop}, options);
  const std::optional<BlockStat> before = ReadBlockStat(target.disk());
  RETURN_IF_ERROR(issuer.Run(clock->NowNs()));
  if (!before || counters.errors.load() > 0 || stop.load()) return std::optional<HostSample>();
  const bool read = op == Op::kRead;
  // The block layer counts an I/O after it has told of its end (blk_mq_end_request).
  const int64_t deadline_ns = clock->NowNs() + kCountedWithinNs;
  std::optional<BlockStat> after;
  do {
    after = ReadBlockStat(target.disk());
    if (!after) return std::optional<HostSample>();
    sink.sample.counted = read ? after->reads - before->reads : after->writes - before->writes;
  } while (sink.sample.counted < sink.sample.ios && clock->NowNs() < deadline_ns);
  // A flush of software counts as a write without sectors.
  sink.sample.counted_ms =
      read ? after->read_ms - before->read_ms : after->write_ms - before->write_ms;
  return std::optional<HostSample>(sink.sample);
}

Result<std::optional<int64_t>> Measure(Engine* engine, Op op, int64_t pause_ns,
                                       const Target& target, std::byte* buffer,
                                       IssuerOptions options, const std::atomic<bool>& stop) {
  options.duration_ns = pause_ns == 0 ? kSampleNs : kPausingSampleNs;
  std::vector<HostSample> samples;
  for (int taken = 0; samples.size() < kSamples; ++taken) {
    if (taken == kMostSamples) return std::optional<int64_t>();
    ASSIGN_OR_RETURN(const std::optional<HostSample> sample,
                     TakeSample(engine, op, pause_ns, target, buffer, options, stop));
    if (!sample) return std::optional<int64_t>();
    if (!sample->DiskServedOthers()) samples.push_back(*sample);
  }
  return HostPartNs(samples);
}

Result<std::optional<HostCost>> MeasureKind(Op op, const std::string& engine_name,
                                            const Target& target, std::byte* buffer,
                                            const IssuerOptions& options,
                                            const std::atomic<bool>& stop) {
  EngineOptions engine_options;
  engine_options.targets = {&target};
  engine_options.depth = options.depth;
  ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, OpenEngine(engine_name, engine_options));
  ASSIGN_OR_RETURN(const std::optional<int64_t> at_once_ns,
                   Measure(engine.get(), op, 0, target, buffer, options, stop));
  ASSIGN_OR_RETURN(const std::optional<int64_t> after_pause_ns,
                   Measure(engine.get(), op, kHostPauseNs, target, buffer, options, stop));
  if (!at_once_ns || !after_pause_ns) return std::optional<HostCost>();
  return std::optional(HostCost{.at_once_ns = *at_once_ns,
                                .after_pause_ns = std::max(*at_once_ns, *after_pause_ns)});
}

}  // namespace

std::optional<int64_t> HostPartNs(const std::vector<HostSample>& samples) {
  struct HostTime {
    int64_t ios;
    int64_t total_ns;
    int64_t Mean() const { return total_ns / ios; }
  };
  std::vector<HostTime> times;
  for (const HostSample& sample : samples) {
    if (sample.ios == 0 || sample.DiskServedOthers()) return std::nullopt;
    const int64_t disk_ns =
        sample.counted == 0 ? 0 : static_cast<int64_t>(sample.counted_ms) * kNanosPerMilli;
    times.push_back({static_cast<int64_t>(sample.ios), sample.seen_ns - disk_ns});
  }
  if (times.empty()) return std::nullopt;
  const int64_t least_ns =
      std::min_element(times.begin(), times.end(), [](const HostTime& a, const HostTime& b) {
        return a.Mean() < b.Mean();
      })->Mean();
  HostTime sum = {0, 0};
  for (const HostTime& time : times) {
    if (time.Mean() - least_ns > 2 * kNanosPerMilli / time.ios) continue;
    sum.ios += time.ios;
    sum.total_ns += time.total_ns;
  }
  return std::max<int64_t>(0, sum.Mean());
}

Result<std::vector<HostPart>> MeasureHostParts(const std::string& engine,
                                               const std::vector<std::unique_ptr<Target>>& targets,
                                               std::byte* buffer, int64_t poll_ns,
                                               const RealtimeScope::Wish& wish,
                                               const std::atomic<bool>& stop) {
  if (engine == "null" || !std::all_of(targets.begin(), targets.end(), Measurable)) {
    return std::vector<HostPart>();
  }
  IssuerOptions one_by_one;
  one_by_one.rule = TimingRule::kClosed;
  one_by_one.depth = 1;
  one_by_one.poll_ns = poll_ns;
  std::vector<HostPart> parts;
  for (const std::unique_ptr<Target>& target : targets) {
    Result<std::optional<HostCost>> transfer = std::optional<HostCost>();
    Result<std::optional<HostCost>> flush = std::optional<HostCost>();
    std::thread([&] {
      const RealtimeScope punctual(wish);
      transfer = MeasureKind(Op::kRead, engine, *target, buffer, one_by_one, stop);
      flush = MeasureKind(Op::kFlush, engine, *target, buffer, one_by_one, stop);
    }).join();
    RETURN_IF_ERROR(transfer.status());
    RETURN_IF_ERROR(flush.status());
    if (!*transfer || !*flush) return std::vector<HostPart>();
    parts.push_back({.transfer = **transfer, .flush = **flush, .has_fua = target->abilities().fua});
  }
  return parts;
}

}  // namespace blktape
