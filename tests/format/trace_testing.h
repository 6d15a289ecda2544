#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_stream.h"
#include "base/status.h"
#include "format/io_record.h"
#include "format/trace_reader.h"
#include "format/trace_writer.h"

namespace blktape {

// Keeps what a reader tells of, in order.
struct Observed : TraceObserver {
  std::vector<proto::Loss> losses;
  std::vector<proto::ClockAnchor> anchors;
  std::vector<proto::Mark> marks;
  std::vector<proto::QueuedSizes> queued_sizes;
  void OnLoss(const proto::Loss& loss) override { losses.push_back(loss); }
  void OnAnchor(const proto::ClockAnchor& anchor) override { anchors.push_back(anchor); }
  void OnMark(const proto::Mark& mark) override { marks.push_back(mark); }
  void OnQueuedSizes(const proto::QueuedSizes& sizes) override { queued_sizes.push_back(sizes); }
};

// A source that gives at most `most` bytes at a time and cannot seek, like a pipe.
class DripSource : public ByteSource {
 public:
  explicit DripSource(std::string bytes, size_t most = 1) : bytes_(std::move(bytes)), most_(most) {}
  Result<size_t> Read(std::span<std::byte> buffer) override;
  Status Seek(uint64_t) override { return Status(StatusCode::kUnimplemented, "drip: cannot seek"); }
  std::optional<uint64_t> size_bytes() const override { return std::nullopt; }
  std::string_view name() const override { return "drip"; }

 private:
  std::string bytes_;
  size_t most_;
  size_t position_ = 0;
};

// A header with `devices` devices called disk0, disk1 ...
proto::Header TestHeader(int devices = 1);

// A write of 4096 bytes at `sector`, queued at `at_ns`, issued 10 ns and completed 110 ns later.
IoRecord Write4k(int64_t at_ns, uint64_t sector);

// Any record that the format can hold with `devices` devices: every field absent or any value.
IoRecord AnyRecord(std::mt19937_64* random, uint32_t devices);

// The first `count` of a DesktopLoad.
std::vector<IoRecord> DesktopRecords(uint64_t seed, size_t count);

// Writes the trace of which golden/v1.tape is the copy of a time when version 1 was new.
Status WriteGolden(const std::string& path);

// The trace of `records`, with a frame every `records_per_frame`.
std::string TraceOf(const std::vector<IoRecord>& records, uint32_t records_per_frame,
                    int devices = 1);

// An unfinished trace of one write, in a batch with a column that no version knows.
std::string TraceOfANewerVersion();

struct ReadBack {
  Status status;  // of Open, or of the Next that failed
  std::vector<IoRecord> records;
  std::vector<proto::Loss> losses;
  uint64_t lost_events = 0;
  bool summary_before = false;  // known before the first record
  std::optional<proto::Summary> summary;
};
ReadBack ReadAll(std::unique_ptr<ByteSource> source);
ReadBack ReadAll(const std::string& trace);

}  // namespace blktape
