#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_stream.h"
#include "capture/files/file_source.h"
#include "capture/files/import_report.h"
#include "capture/files/row_sorter.h"
#include "capture/import/import_format.h"

namespace blktape {

// Reads one or several files of a format of rows or events (capture/import) in parallel, by time. A
// row may be up to `window` rows out of order; a file with a larger disorder is refused before
// anything is delivered.
class RowFileSource : public FileSource {
 public:
  // The inputs must be readable twice from their start.
  RowFileSource(ImportFormat format, std::vector<std::unique_ptr<ByteSource>> inputs,
                size_t window = 131'072);
  ~RowFileSource() override;

  std::string_view name() const override { return format_.name; }
  Status Start() override;
  Result<bool> Poll(int timeout_ms, CaptureSink* sink) override;
  Status Stop(CaptureSink* sink) override;
  std::vector<Disk> devices() const override { return devices_; }

  std::string description() const override { return format_.title; }
  std::optional<proto::ClockAnchor> start() const override { return start_; }
  double progress() const override;
  const ImportReport* report() const override { return &report_; }

 private:
  class Input;
  class Devices;

  Status Rewind();
  Result<bool> DeliverSome(CaptureSink* sink);
  void DeliverEnd(CaptureSink* sink);

  const ImportFormat format_;
  size_t window_;
  std::vector<std::unique_ptr<Input>> inputs_;
  std::unique_ptr<Devices> found_;
  std::unique_ptr<RowSorter> sorter_;
  CaptureSink* sink_ = nullptr;  // of the sorter, while it delivers
  std::vector<Disk> devices_;
  std::optional<proto::ClockAnchor> start_;
  ImportReport report_;
  Status failed_;
  uint64_t orphans_ = 0;
  bool ended_ = false;
  uint64_t bytes_total_ = 0;
};

}  // namespace blktape
