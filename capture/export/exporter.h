#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_stream.h"
#include "base/status.h"
#include "format/io_record.h"
#include "format/trace.pb.h"

namespace blktape {

// Writes a trace in another program's format. Not thread-safe.
class Exporter {
 public:
  virtual ~Exporter() = default;

  // Once, before the first record.
  virtual Status Begin(const proto::Header& header) = 0;
  // In the order of the trace. `process` is the name, empty where not known.
  virtual Status Record(const IoRecord& record, std::string_view process) = 0;
  // Once, after the last record.
  virtual Status Finish() = 0;

  // What the format could not hold of this trace, and of how many I/Os: "completion times".
  const std::map<std::string, uint64_t>& left_out() const { return left_out_; }

 protected:
  void LeftOut(const char* what) { ++left_out_[what]; }

 private:
  std::map<std::string, uint64_t> left_out_;
};

// Where an exporter's files come from.
class ExportOutput {
 public:
  virtual ~ExportOutput() = default;
  // The one file, or one of several that are called alike but for `suffix`, as in
  // "NAME.blktrace.0". Good until the output goes. Fails as CreateFile does.
  virtual Result<ByteSink*> File(const std::string& suffix) = 0;
};

struct ExportFormat {
  std::string name;   // of --to
  std::string title;  // in one line
  std::string lacks;  // what it cannot hold, in one line
  // Several files: not for standard output.
  bool several_files = false;
  std::function<std::unique_ptr<Exporter>(ExportOutput*)> make;
};

// All of them, in the order of the help. A further format is one more line in export_formats.cc.
const std::vector<ExportFormat>& ExportFormats();

// Each is defined in a file of its own.
ExportFormat FioIologExport();
ExportFormat BlktraceExport();
ExportFormat CsvExport();
ExportFormat JsonLinesExport();
ExportFormat PerfettoExport();

}  // namespace blktape
