#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/export/exporter.h"
#include "capture/export/json_text.h"
#include "capture/export/text_output.h"

namespace blktape {
namespace {

// An object a line. A key that is not there is not known.
class JsonLines : public Exporter {
 public:
  explicit JsonLines(ExportOutput* output) : output_(output) {}

  Status Begin(const proto::Header& header) override {
    for (const proto::Device& device : header.devices()) devices_.push_back(device.name());
    ASSIGN_OR_RETURN(ByteSink* const sink, output_->File(""));
    text_.emplace(sink);
    return OkStatus();
  }
  Status Record(const IoRecord& io, std::string_view process) override {
    if (io.ordinal) LeftOut("which I/O of the replayed trace it was");
    fmt::memory_buffer& text = *text_->text();
    text_->Append("{\"op\":\"");
    text_->Append(OpName(io.op));
    text_->Append("\",\"device\":");
    AppendJsonString(devices_[io.device], &text);
    Number("lba", io.lba ? std::optional<uint64_t>(io.lba->sectors) : std::nullopt);
    Number("bytes", std::optional<uint64_t>(io.bytes));
    Number("queue_ns", io.queue_ns);
    Number("issue_ns", io.issue_ns);
    Number("complete_ns", io.complete_ns);
    if (io.flags != 0) {
      text_->Append(",\"flags\":\"");
      text_->Append(FlagNames(io.flags));
      text_->Append("\"");
    }
    Number("error", io.error);
    Number("pid", io.pid);
    if (!process.empty()) {
      text_->Append(",\"process\":");
      AppendJsonString(process, &text);
    }
    Number("cpu", io.cpu);
    Number("merged_bios", io.merged_bios);
    Number("prio", io.prio);
    Number("backlog_ns", io.backlog_ns);
    Number("waker", io.waker);
    Number("since_wake_ns", io.since_wake_ns);
    text_->Append("}\n");
    return text_->FlushIfLarge();
  }
  Status Finish() override { return text_->Flush(); }

 private:
  template <typename T>
  void Number(const char* key, const std::optional<T>& number) {
    if (number) fmt::format_to(std::back_inserter(*text_->text()), ",\"{}\":{}", key, *number);
  }

  ExportOutput* output_;
  std::vector<std::string> devices_;
  std::optional<TextOutput> text_;
};

}  // namespace

ExportFormat JsonLinesExport() {
  return {.name = "jsonl",
          .title = "JSON lines, an object an I/O (import reads it back)",
          .lacks = "losses, marks, sizes as queued, the wall clock, what the disk is",
          .make = [](ExportOutput* output) { return std::make_unique<JsonLines>(output); }};
}

}  // namespace blktape
