// Block events of any kind, place and time, through the whole pipeline: whatever a kernel or a
// damaged file may say, nothing breaks, and a record never has more than was issued.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "capture/assemble/capture_pipeline.h"
#include "capture/source/rwbs.h"
#include "format/loss.h"
#include "format/trace_writer.h"

namespace {

using namespace blktape;  // NOLINT: a fuzz target of one function

class CountingWriter : public TraceWriter {
 public:
  uint32_t ProcessId(std::string_view /*name*/) override { return 0; }
  Status Write(const IoRecord& record) override {
    ++records_;
    if (record.op != Op::kFlush && !record.lba) std::abort();
    if (!record.arrival_ns()) std::abort();
    return OkStatus();
  }
  Status WriteLoss(const proto::Loss& loss) override {
    tally_.Add(loss);
    return OkStatus();
  }
  Status WriteAnchor(const proto::ClockAnchor& /*anchor*/) override { return OkStatus(); }
  Status WriteMark(const proto::Mark& /*mark*/) override { return OkStatus(); }
  void CountQueued(Op /*op*/, uint64_t /*bytes*/, uint64_t /*count*/) override {}
  void CountFlaggedWrites(uint64_t /*count*/) override {}
  Status FlushFrame(bool /*sync*/) override { return OkStatus(); }
  Status Finish(const proto::Summary& /*extra*/) override { return OkStatus(); }
  const LossTally& loss_tally() const override { return tally_; }
  uint64_t records() const override { return records_; }
  bool in_order() const override { return true; }
  uint64_t bytes_written() const override { return 0; }

 private:
  uint64_t records_ = 0;
  LossTally tally_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kEventBytes = 6;
  constexpr Op kOps[] = {Op::kRead, Op::kWrite, Op::kDiscard, Op::kFlush};
  CountingWriter writer;
  std::vector<Disk> devices(2);
  devices[0].dev = 1;
  devices[1].dev = 2;
  devices[1].bio_based = true;
  CapturePipelineOptions options;
  options.hold_records = 64;
  options.own_pids = {3};
  CapturePipeline pipeline(&writer, devices, options);
  int64_t now_ns = 0;
  uint64_t issued = 0;
  for (; size >= kEventBytes; data += kEventBytes, size -= kEventBytes) {
    if (data[0] == 0xff) {
      pipeline.OnWatermark(now_ns);
      continue;
    }
    if (data[0] == 0xfe) {
      proto::Loss loss;
      loss.set_reason(proto::RING_OVERRUN);
      if (data[1] & 1) loss.set_to_ns(now_ns + data[2]);
      pipeline.OnLoss(loss);
      continue;
    }
    BlockEvent event;
    // Mostly forward, by nanoseconds to hours, and now and then back.
    const int64_t step_ns = int64_t{data[1] & 15} << (data[1] >> 4) * 3;
    now_ns += (data[2] & 0xe0) == 0xe0 ? -step_ns / 2 : step_ns;
    event.time_ns = now_ns;
    event.action = static_cast<BlockAction>(data[0] % 10);
    event.device = 1 + (data[2] & 1);
    event.op = kOps[data[2] >> 1 & 3];
    event.flags = data[2] >> 3 & 3 ? kFlagPreflush >> (data[2] >> 3 & 1) : 0;
    event.pid = data[3] >> 6;
    event.lba = Lba(data[3] & 31);
    event.bytes = uint64_t{data[4] & 15u} * 512;
    event.split_lba = Lba(event.lba.sectors + (data[4] >> 4));
    event.error = data[5] & 1;
    event.passthrough = (data[5] & 0x7e) == 0x7e;
    if (data[5] == 0x55) event.lba = Lba(~uint64_t{0} - data[3]);
    NormalizeFlush(&event);
    // A completion of a bio-based device makes a record; a discard of several ranges one for each.
    // A bio of such a device that is split becomes two, also by an issue from its middle, which no
    // kernel tells of such a device.
    switch (event.action) {
      case BlockAction::kQueue:
      case BlockAction::kSplit:
      case BlockAction::kComplete:
        ++issued;
        break;
      case BlockAction::kIssue:
        issued += event.device == 2 ? 2 : 1;
        break;
      default:
        break;
    }
    pipeline.OnEvent(data[5] >> 7, event);
  }
  if (!pipeline.Finish().ok()) std::abort();
  if (writer.records() + pipeline.counts().own_excluded > issued) std::abort();
  return 0;
}
