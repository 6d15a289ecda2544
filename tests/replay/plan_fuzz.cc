// Bytes as a trace that is to be replayed: what a dry run does with it, up to every step of the
// plan. The first three bytes choose the options and the target.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/check.h"
#include "format/io_record.h"
#include "replay/plan/kept_blocks.h"
#include "replay/plan/plan.h"
#include "replay/plan/timing_rule.h"
#include "replay/plan/trace_stream.h"
#include "replay/setup.h"
#include "tests/format/fuzz_trace.h"

namespace blktape {
namespace {

// A few bytes of a batch may hold very many records.
constexpr uint64_t kEnough = 20'000;

constexpr uint64_t kGiB = 1 << 30;
constexpr uint64_t kTiB = kGiB << 10;

// Smaller than a block, odd ends, smaller and larger than traces are.
constexpr uint64_t kTargetBytes[] = {
    0,       1,       511,           512,     4096,      5000, 1 << 16,     (1 << 20) - 512,
    1 << 20, 1 << 26, (1 << 30) + 1, 1 << 30, kGiB * 40, kTiB, kTiB * 4096, INT64_MAX};
constexpr uint32_t kBlockBytes[] = {1, 512, 4096, 4096};

ReplayOptions OptionsFrom(uint8_t one, uint8_t other, uint8_t target) {
  constexpr TimingRule kRules[] = {TimingRule::kTimed, TimingRule::kMaxOrder,
                                   TimingRule::kQueueDepth, TimingRule::kClosed};
  constexpr const char* kRemaps[] = {"refuse", "offset", "scale", "wrap"};
  constexpr const char* kUnsupported[] = {"fail", "skip", "emulate", "emulate"};
  ReplayOptions options;
  options.engine = "null";
  options.rule = kRules[one & 3];
  if (options.rule == TimingRule::kQueueDepth) options.queue_depth = 4;
  options.remap = kRemaps[one >> 2 & 3];
  options.unsupported = kUnsupported[one >> 4 & 3];
  options.align = (one & 64) != 0;
  options.loops = (one & 128) != 0 ? 2 : 1;
  if ((other & 1) != 0) options.from_ns = other;
  if ((other & 2) != 0) options.to_ns = int64_t{1} << (other >> 2) % 63;
  options.keep_think_time = (other & 4) != 0 && !IsPunctual(options.rule);
  if ((other & 8) != 0 && (options.keep_think_time || IsPunctual(options.rule))) {
    options.idle_cap_ns = other;
  }
  options.skip_writes = (other & 16) != 0;
  options.skip_discards = (other & 32) != 0;
  options.secure_erase = (other & 64) != 0;
  if ((other & 128) != 0) options.speed = 1000;
  options.made_up_block_bytes = kBlockBytes[target & 3];
  options.made_up_bytes = kTargetBytes[target >> 2 & 15];  // 0: as large as the trace
  if ((target & 64) != 0) options.remap_offset_bytes = int64_t{-1} << target % 61;
  return options;
}

// As if each third record were left out of the runs.
std::shared_ptr<const KeptBlocks> KeptIn(const std::string& path) {
  const auto kept = std::make_shared<KeptBlocks>(/*most_pieces=*/1000);
  const auto pass = [&path](const auto& what) {
    const auto stream = TraceStream::Open(path, {});
    if (!stream.ok()) return;
    IoRecord io;
    uint64_t ordinal = 0;
    for (uint64_t i = 0; i < kEnough; ++i) {
      const Result<bool> more = (*stream)->Next(&io, &ordinal);
      if (!more.ok() || !*more) return;
      what(io, ordinal % 3 != 0);
    }
  };
  pass([&kept](const IoRecord& io, bool replayed) {
    if (io.op == Op::kRead && replayed) kept->Follow(io);
  });
  pass([&kept](const IoRecord& io, bool replayed) { kept->Add(io, replayed); });
  kept->Finish();
  return kept;
}

void Run(ReplayOptions options, bool able, std::string_view bytes) {
  options.trace_path = PathInMemory(TraceFromBytes(bytes));
  const std::atomic<bool> stop(false);
  Result<ReplaySetup> setup = SetUpReplay(options, stop);
  if (!setup.ok()) {
    BLKTAPE_CHECK(!setup.status().message().empty());
    return;
  }
  const size_t devices = static_cast<size_t>(setup->stream->header().devices_size());
  BLKTAPE_CHECK(setup->plan.target_of_device.size() >= devices);
  BLKTAPE_CHECK(setup->plan.address_map_of_device.size() >= devices);
  if (!able) {
    for (PlanTarget& target : setup->plan.targets) target.abilities = {};
  }
  setup->plan.kept = KeptIn(options.trace_path);
  const PlanOptions known = setup->plan;
  Plan plan(setup->stream.get(), setup->plan);
  PlannedIo io;
  for (uint64_t steps = 0; steps < kEnough; ++steps) {
    const Result<bool> more = plan.Next(&io);
    if (!more.ok() || !*more) break;
    if (io.kind != PlannedIo::Kind::kIo) continue;
    BLKTAPE_CHECK(io.target < known.targets.size());
    BLKTAPE_CHECK(static_cast<int>(io.op) < kOpCount);
    BLKTAPE_CHECK(io.required_count <= PlannedIo::kMaxRequired);
    const PlanTarget& target = known.targets[io.target];
    if (io.op != Op::kFlush && io.bytes > 0) {
      const uint64_t size = target.size_bytes;
      BLKTAPE_CHECK(io.offset_bytes <= size && io.bytes <= size - io.offset_bytes);
      BLKTAPE_CHECK(io.offset_bytes % target.block_bytes == 0);
      BLKTAPE_CHECK(io.bytes % target.block_bytes == 0);
    }
  }
}

}  // namespace
}  // namespace blktape

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  blktape::Run(blktape::OptionsFrom(data[0], data[1], data[2]), (data[2] & 128) == 0,
               {reinterpret_cast<const char*>(data) + 3, size - 3});
  return 0;
}
