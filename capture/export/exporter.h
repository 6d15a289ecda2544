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

  // Call once, before the first record.
  virtual Status Begin(const proto::Header& header) = 0;
  // Call for each record, in the order of the trace. `process` is the name, empty if unknown.
  virtual Status Record(const IoRecord& record, std::string_view process) = 0;
  // Call once, after the last record.
  virtual Status Finish() = 0;

  // What the format could not represent, for example "completion times", and for how many I/Os.
  const std::map<std::string, uint64_t>& left_out() const { return left_out_; }

 protected:
  void LeftOut(const char* what) { ++left_out_[what]; }

 private:
  std::map<std::string, uint64_t> left_out_;
};

// Creates the files of an exporter.
class ExportOutput {
 public:
  virtual ~ExportOutput() = default;
  // The single output file, or one of several that differ only in `suffix`, as in
  // "NAME.blktrace.0". Valid while the output exists. Fails like CreateFile.
  virtual Result<ByteSink*> File(const std::string& suffix) = 0;
};

struct ExportFormat {
  std::string name;   // the name for --to
  std::string title;  // one line for the help
  std::string lacks;  // what the format cannot represent, in one line
  // Writes several files, so it cannot write to standard output.
  bool several_files = false;
  std::function<std::unique_ptr<Exporter>(ExportOutput*)> make;
};

// All formats, in the order of the help. A new format is one more line in export_formats.cc.
const std::vector<ExportFormat>& ExportFormats();

// Each is defined in its own file.
ExportFormat FioIologExport();
ExportFormat BlktraceExport();
ExportFormat CsvExport();
ExportFormat JsonLinesExport();
ExportFormat PerfettoExport();

}  // namespace blktape
