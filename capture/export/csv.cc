#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/export/csv_row.h"
#include "capture/export/exporter.h"
#include "capture/export/text_output.h"

namespace blktape {
namespace {

// The columns of `dump --csv`, then those that only some traces have.
class Csv : public Exporter {
 public:
  explicit Csv(ExportOutput* output) : output_(output) {}

  Status Begin(const proto::Header& header) override {
    for (const proto::Device& device : header.devices()) devices_.push_back(device.name());
    ASSIGN_OR_RETURN(ByteSink* const sink, output_->File(""));
    text_.emplace(sink);
    text_->Append(kCsvColumns);
    text_->Append(",merged_bios,prio,backlog_ns,waker,since_wake_ns\n");
    return OkStatus();
  }
  Status Record(const IoRecord& io, std::string_view process) override {
    if (io.ordinal) LeftOut("which I/O of the replayed trace it was");
    AppendCsvRow(io, devices_[io.device], process, text_->text());
    const auto out = std::back_inserter(*text_->text());
    io.merged_bios ? fmt::format_to(out, ",{}", *io.merged_bios) : fmt::format_to(out, ",");
    io.prio ? fmt::format_to(out, ",{}", *io.prio) : fmt::format_to(out, ",");
    io.backlog_ns ? fmt::format_to(out, ",{}", *io.backlog_ns) : fmt::format_to(out, ",");
    io.waker ? fmt::format_to(out, ",{}", *io.waker) : fmt::format_to(out, ",");
    io.since_wake_ns ? fmt::format_to(out, ",{}\n", *io.since_wake_ns) : fmt::format_to(out, ",\n");
    return text_->FlushIfLarge();
  }
  Status Finish() override { return text_->Flush(); }

 private:
  ExportOutput* output_;
  std::vector<std::string> devices_;
  std::optional<TextOutput> text_;
};

}  // namespace

ExportFormat CsvExport() {
  return {.name = "csv",
          .title = "CSV, a row an I/O under a header line (import reads it back)",
          .lacks = "losses, marks, sizes as queued, the wall clock, what the disk is",
          .make = [](ExportOutput* output) { return std::make_unique<Csv>(output); }};
}

}  // namespace blktape
