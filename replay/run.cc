#include "replay/run.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <set>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/units.h"
#include "replay/engine/engine_factory.h"
#include "replay/issue/feed.h"

namespace blktape {
namespace {

constexpr uint32_t kFileDepth = 256;
constexpr uint32_t kSmallestDepth = 32;
constexpr uint32_t kLargestDepth = 1024;
constexpr uint32_t kBatchAtFullSpeed = 16;
constexpr uint64_t kLeastBufferBytes = 32 << 20;
constexpr uint64_t kMostBufferBytes = 256 << 20;
// Larger reads gain nothing from a cache; buffers are aligned to the smallest.
constexpr uint64_t kLargestReadBuffer = 16384;
constexpr uint64_t kSmallestReadBuffer = 4096;

// The same step again and again.
class CannedFeed : public PlanFeed {
 public:
  explicit CannedFeed(uint64_t count) : count_(count) {}
  State Peek(PlannedIo** io) override {
    *io = &io_;
    return io_.sequence < count_ ? State::kReady : State::kEnd;
  }
  void Pop() override {
    ++io_.sequence;
    io_.offset_bytes += 4096;
  }
  bool WantsMemory() const override { return false; }

 private:
  const uint64_t count_;
  PlannedIo io_{.op = Op::kRead, .bytes = 4096};
};

class IgnoringSink : public IssueSink {
 public:
  void Done(const IssuedIo& /*io*/) override {}
};

// Most reads of fast drives, and writes into a drive's cache, end within the short time; within the
// long one all but those of rotating disks, of which a wake-up is a hundredth.
constexpr int64_t kPollNs = 100 * kNanosPerMicro;
constexpr int64_t kLongPollNs = 2 * kNanosPerMilli;

bool AnswersByInterrupt(const Target& target) {
  const std::string& folder = target.disk();  // in sysfs
  return folder.find("/pci") != std::string::npos && folder.find("/usb") == std::string::npos;
}

}  // namespace

uint32_t ChooseDepth(const ReplayOptions& options, const ReplaySetup& setup) {
  if (options.rule == TimingRule::kQueueDepth) return options.queue_depth;
  if (options.depth != 0) return options.depth;
  uint32_t depth = kLargestDepth;
  for (const std::unique_ptr<Target>& target : setup.targets) {
    const proto::Device& device = target->description();
    if (!target->is_block_device()) {
      depth = std::min(depth, kFileDepth);
    } else if (device.has_nr_requests() && device.nr_requests() > 0) {
      depth = std::min(depth, std::max(device.nr_requests(), kSmallestDepth));
    }
  }
  return depth;
}

uint64_t ChooseBufferBytes(const ReplayOptions& options, const RecordStream& stream) {
  uint64_t wanted = options.buffer_bytes == 0 ? kLeastBufferBytes : options.buffer_bytes;
  const std::optional<uint64_t> mean_bytes = stream.mean_data_bytes();
  if (options.buffer_bytes == 0 && IsPunctual(options.rule) && mean_bytes) {
    wanted = std::clamp(*mean_bytes * ThreadedFeed::kStepsAhead * 2, kLeastBufferBytes,
                        kMostBufferBytes);
  }
  const std::optional<uint64_t> data_bytes = stream.data_bytes();
  const bool known = data_bytes && stream.records() && options.unsupported != "emulate";
  if (!known) return wanted;
  // Buffers are whole pages; and a part of the memory is kept from being prepared ahead.
  const uint64_t all_bytes = *data_bytes + 4096 * *stream.records();
  return std::min(wanted, std::max(kLeastBufferBytes, 2 * all_bytes));
}

uint64_t ChooseReadBufferBytes(const ReplayOptions& options, uint32_t depth,
                               uint64_t memory_bytes) {
  if (IsPunctual(options.rule) || options.verify) return 0;
  const uint64_t bytes = std::bit_floor(std::min(kLargestReadBuffer, memory_bytes / 4 / depth));
  return bytes >= kSmallestReadBuffer ? bytes : 0;
}

bool HasReserve(const ReplayOptions& options) {
  return options.rule == TimingRule::kTimed && options.realtime && !options.submission_thread &&
         options.threads == 1 && std::thread::hardware_concurrency() > 1;
}

IssuerOptions IssuerOptionsOf(const ReplayOptions& options, uint32_t depth) {
  return {.rule = options.rule,
          .depth = depth,
          .spin_ns = options.spin_ns,
          .spin_in_flight_ns = options.spin_in_flight_ns,
          // A timed I/O is stamped and handed over by itself: the last of a batch would be later
          // than its stamp says.
          .batch = IsPunctual(options.rule) ? 1 : kBatchAtFullSpeed,
          .order_overlaps = options.order_overlaps,
          .stop_on_error = options.on_error == "stop",
          .duration_ns = options.duration_ns};
}

int64_t ChoosePollNs(const ReplayOptions& options,
                     const std::vector<std::unique_ptr<Target>>& targets, uint32_t cpus) {
  // Above a queue depth of one the next completion is never far, and the CPU is better left to
  // those who feed the thread.
  const bool deep = options.rule == TimingRule::kQueueDepth && options.queue_depth > 1;
  if (deep || cpus <= options.threads) return 0;
  const bool by_interrupt = std::all_of(
      targets.begin(), targets.end(),
      [](const std::unique_ptr<Target>& target) { return AnswersByInterrupt(*target); });
  return by_interrupt && cpus >= options.threads + 2 ? kLongPollNs : kPollNs;
}

Result<int64_t> MeasureOwnCostNs() {
  constexpr uint64_t kIos = 50'000;
  constexpr uint32_t kDepth = 32;
  EngineOptions engine_options;
  engine_options.depth = kDepth;
  ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, OpenEngine("null", engine_options));
  CannedFeed feed(kIos);
  IgnoringSink sink;
  IssueCounters counters;
  const std::atomic<bool> stop = false;
  Clock* clock = Clock::Monotonic();
  Issuer issuer(engine.get(), clock, &feed, &sink, &counters, StopFlags{&stop},
                {.rule = TimingRule::kQueueDepth, .depth = kDepth, .batch = kBatchAtFullSpeed});
  const int64_t start_ns = clock->NowNs();
  RETURN_IF_ERROR(issuer.Run(start_ns));
  return (clock->NowNs() - start_ns) / static_cast<int64_t>(kIos);
}

SectorWatch::SectorWatch(const std::vector<std::unique_ptr<Target>>& targets)
    : targets_(targets), before_(Now()) {}

std::optional<uint64_t> SectorWatch::Now() const {
  if (targets_.empty()) return std::nullopt;
  uint64_t sectors = 0;
  std::set<std::string> counted;
  for (const std::unique_ptr<Target>& target : targets_) {
    if (!counted.insert(target->disk()).second) continue;
    const std::optional<uint64_t> one = target->StatSectors();
    if (!one) return std::nullopt;
    sectors += *one;
  }
  return sectors;
}

std::optional<uint64_t> SectorWatch::Foreign(uint64_t ours) const {
  const std::optional<uint64_t> now = Now();
  if (!before_ || !now) return std::nullopt;
  const uint64_t moved = *now - *before_;
  return moved > ours ? moved - ours : 0;
}

}  // namespace blktape
