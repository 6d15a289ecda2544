// What the pipeline costs an I/O, from what a source delivers to bytes of a trace: as three events
// (Q, D, C), as tracefs and blktrace tell it, and as a finished request, as BPF does.
//
//   bazel run -c opt //tests/capture/assemble:pipeline_benchmark
#include <time.h>

#include <cstdint>
#include <cstdio>
#include <random>
#include <span>
#include <string_view>

#include "base/byte_stream.h"
#include "base/units.h"
#include "capture/assemble/capture_pipeline.h"
#include "format/trace_writer.h"

namespace blktape {
namespace {

constexpr int kIos = 1'000'000;
constexpr int kDepth = 32;
constexpr uint32_t kDev = 7u << 20;

// Counts what it is given.
class NullSink : public ByteSink {
 public:
  Status Write(std::span<const std::byte> bytes) override {
    bytes_ += bytes.size();
    return OkStatus();
  }
  Status Sync() override { return OkStatus(); }
  std::string_view name() const override { return "null"; }
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t bytes_ = 0;
};

// CPU time of this process: the machine may be busy with other things.
int64_t CpuNs() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * kNanosPerSecond + now.tv_nsec;
}

template <typename Feed>
void Measure(const char* name, Feed feed) {
  NullSink sink;
  proto::Header header;
  header.add_devices()->set_name("loop0");
  auto writer = TraceWriter::ToSink(&sink, header);
  if (!writer.ok()) return;
  Disk device;
  device.dev = kDev;
  CapturePipelineOptions options;
  options.hold_ns = 250'000'000;
  CapturePipeline pipeline(writer->get(), {device}, options);
  const int64_t begin_ns = CpuNs();
  feed(&pipeline);
  if (!pipeline.Finish().ok() || !(*writer)->Finish({}).ok()) return;
  const int64_t spent_ns = CpuNs() - begin_ns;
  std::printf("%-10s %6.0f ns an I/O, %.1f B an I/O, %lu records\n", name,
              static_cast<double>(spent_ns) / kIos, static_cast<double>(sink.bytes()) / kIos,
              (*writer)->records());
}

void Events(CapturePipeline* pipeline) {
  std::mt19937_64 random(1);
  uint64_t sectors[kDepth] = {};
  int64_t now_ns = 0;
  BlockEvent event;
  event.device = kDev;
  event.bytes = 4096;
  event.comm = {'f', 'i', 'o'};
  for (int i = 0; i < kIos + kDepth; ++i) {
    uint64_t& sector = sectors[i % kDepth];
    event.cpu = static_cast<uint32_t>(i & 1);
    if (i >= kDepth) {
      event.time_ns = now_ns += 1000 + static_cast<int64_t>(random() % 500);
      event.action = BlockAction::kComplete;
      event.lba = Lba(sector);
      pipeline->OnEvent(event.cpu, event);
    }
    if (i < kIos) {
      sector = random() % (1 << 20) * 8;
      event.lba = Lba(sector);
      event.time_ns = now_ns += 700;
      event.action = BlockAction::kQueue;
      event.pid = 42;
      pipeline->OnEvent(event.cpu, event);
      event.time_ns = now_ns += 500;
      event.action = BlockAction::kIssue;
      pipeline->OnEvent(event.cpu, event);
    }
    if (i % 1024 == 0) pipeline->OnWatermark(now_ns);
  }
}

void Finished(CapturePipeline* pipeline) {
  std::mt19937_64 random(1);
  int64_t now_ns = 0;
  const ProcessComm comm = {'f', 'i', 'o'};
  IoRecord record;
  record.device = kDev;
  record.bytes = 4096;
  record.error = 0;
  record.pid = 42;
  for (int i = 0; i < kIos; ++i) {
    now_ns += 3000 + static_cast<int64_t>(random() % 500);
    record.lba = Lba(random() % (1 << 20) * 8);
    record.queue_ns = now_ns - 100'000 + static_cast<int64_t>(random() % 50'000);
    record.issue_ns = *record.queue_ns + 800;
    record.complete_ns = now_ns;
    record.cpu = static_cast<uint32_t>(i & 1);
    pipeline->OnFinished(*record.cpu, record, comm);
    if (i % 1024 == 0) pipeline->OnWatermark(now_ns);
  }
}

}  // namespace
}  // namespace blktape

int main() {
  blktape::Measure("events", blktape::Events);
  blktape::Measure("finished", blktape::Finished);
  return 0;
}
