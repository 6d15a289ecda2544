#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_stream.h"
#include "capture/blktrace/blktrace_decoder.h"
#include "capture/files/file_source.h"

namespace blktape {

// Reads blktrace's binary files: the per-CPU files of one or several disks, or a dump that
// `blkparse -d` has merged. All files are read in parallel by time, so that memory is bounded
// however long they are. In a dump, times are relative to its first event but the wall clock is
// not; the anchor is then moved to the dump's time zero.
class BlktraceFileSource : public FileSource {
 public:
  // The inputs must be readable twice from their start.
  explicit BlktraceFileSource(std::vector<std::unique_ptr<ByteSource>> inputs);
  ~BlktraceFileSource() override;

  std::string_view name() const override { return "blktrace-file"; }
  Status Start() override;
  Result<bool> Poll(int timeout_ms, CaptureSink* sink) override;
  Status Stop(CaptureSink* sink) override;
  std::vector<Disk> devices() const override { return devices_; }

  std::string description() const override;
  std::optional<proto::ClockAnchor> start() const override { return start_; }
  double progress() const override;

 private:
  class Input;
  class Scan;

  std::vector<std::unique_ptr<Input>> inputs_;
  std::vector<Disk> devices_;
  std::optional<proto::ClockAnchor> start_;
  int64_t anchor_shift_ns_ = 0;  // added to the monotonic side of anchors
  int version_ = 0;
  uint64_t bytes_total_ = 0;
};

}  // namespace blktape
