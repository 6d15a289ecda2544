#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capture/export/exporter.h"
#include "capture/export/json_text.h"
#include "capture/export/text_output.h"

namespace blktape {
namespace {

// The "Trace Event Format" (JSON) that ui.perfetto.dev and chrome://tracing open: a process a
// device, in it a track an operation with a slice an I/O, from its issue (or, without one, its
// arrival) to its completion, and the queue depth as a counter. Times in us from the first arrival,
// with ns as decimals: JSON numbers hold no 64 bits.
class Perfetto : public Exporter {
 public:
  explicit Perfetto(ExportOutput* output) : output_(output) {}

  Status Begin(const proto::Header& header) override {
    ASSIGN_OR_RETURN(ByteSink* const sink, output_->File(""));
    text_.emplace(sink);
    text_->Append("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    for (int i = 0; i < header.devices_size(); ++i) {
      Begin();
      Format("{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"args\":{{\"name\":", i + 1);
      AppendJsonString(header.devices(i).name(), text_->text());
      text_->Append("}}");
    }
    depths_.resize(static_cast<size_t>(header.devices_size()));
    return OkStatus();
  }

  Status Record(const IoRecord& io, std::string_view process) override {
    const std::optional<int64_t> begin_ns = io.issue_ns ? io.issue_ns : io.queue_ns;
    if (!begin_ns) {
      LeftOut("I/Os of unknown time");
      return OkStatus();
    }
    if (!first_ns_) first_ns_ = io.arrival_ns();
    const uint32_t pid = io.device + 1;
    ++id_;
    if (!io.complete_ns) {
      Begin();
      Format("{{\"ph\":\"n\",\"cat\":\"io\",\"name\":\"{}\",\"id\":{},\"pid\":{},\"ts\":{}",
             OpName(io.op), id_, pid, Micros(*begin_ns));
      Arguments(io, process);
      return text_->FlushIfLarge();
    }
    Begin();
    Format("{{\"ph\":\"b\",\"cat\":\"io\",\"name\":\"{}\",\"id\":{},\"pid\":{},\"ts\":{}",
           OpName(io.op), id_, pid, Micros(*begin_ns));
    Arguments(io, process);
    Begin();
    Format("{{\"ph\":\"e\",\"cat\":\"io\",\"name\":\"{}\",\"id\":{},\"pid\":{},\"ts\":{}}}",
           OpName(io.op), id_, pid, Micros(*io.complete_ns));
    Depth& depth = depths_[io.device];
    // What arrives from now on is issued, and ends, no earlier.
    Advance(io.arrival_ns().value_or(*begin_ns), pid, &depth);
    depth.changes.push({*begin_ns, +1});
    depth.changes.push({std::max(*begin_ns, *io.complete_ns), -1});
    return text_->FlushIfLarge();
  }

  Status Finish() override {
    for (size_t i = 0; i < depths_.size(); ++i) {
      while (!depths_[i].changes.empty()) {
        Change(static_cast<uint32_t>(i) + 1, &depths_[i]);
        RETURN_IF_ERROR(text_->FlushIfLarge());
      }
    }
    text_->Append("\n]}\n");
    return text_->Flush();
  }

 private:
  struct Depth {
    // When it changes, and by how much.
    std::priority_queue<std::pair<int64_t, int>, std::vector<std::pair<int64_t, int>>,
                        std::greater<>>
        changes;
    int64_t requests = 0;
  };

  void Begin() {
    text_->Append(any_ ? ",\n" : "\n");
    any_ = true;
  }
  template <typename... Parts>
  void Format(fmt::format_string<Parts...> format, Parts&&... parts) {
    fmt::format_to(std::back_inserter(*text_->text()), format, std::forward<Parts>(parts)...);
  }
  std::string Micros(int64_t ns) const {
    const auto since = static_cast<int64_t>(static_cast<uint64_t>(ns) -
                                            static_cast<uint64_t>(first_ns_.value_or(ns)));
    const uint64_t size =
        since < 0 ? uint64_t{0} - static_cast<uint64_t>(since) : static_cast<uint64_t>(since);
    return fmt::format("{}{}.{:03}", since < 0 ? "-" : "", size / 1000, size % 1000);
  }
  void Advance(int64_t before_ns, uint32_t pid, Depth* depth) {
    while (!depth->changes.empty() && depth->changes.top().first < before_ns) Change(pid, depth);
  }
  // All that changes at the next moment at which something does.
  void Change(uint32_t pid, Depth* depth) {
    const int64_t ns = depth->changes.top().first;
    while (!depth->changes.empty() && depth->changes.top().first == ns) {
      depth->requests += depth->changes.top().second;
      depth->changes.pop();
    }
    Begin();
    Format(
        "{{\"ph\":\"C\",\"name\":\"queue depth\",\"pid\":{},\"ts\":{},"
        "\"args\":{{\"requests\":{}}}}}",
        pid, Micros(ns), depth->requests);
  }
  void Arguments(const IoRecord& io, std::string_view process) {
    Format(",\"args\":{{\"bytes\":{}", io.bytes);
    if (io.lba) Format(",\"lba\":{}", io.lba->sectors);
    if (io.flags != 0) Format(",\"flags\":\"{}\"", FlagNames(io.flags));
    if (io.queue_ns && io.issue_ns) {
      Format(",\"queued_us\":{}", Micros(*io.queue_ns));
    }
    if (io.error.value_or(0) != 0) Format(",\"error\":{}", *io.error);
    if (io.pid) Format(",\"pid\":{}", *io.pid);
    if (io.cpu) Format(",\"cpu\":{}", *io.cpu);
    if (!process.empty()) {
      text_->Append(",\"process\":");
      AppendJsonString(process, text_->text());
    }
    text_->Append("}}");
  }

  ExportOutput* output_;
  std::optional<TextOutput> text_;
  std::vector<Depth> depths_;
  std::optional<int64_t> first_ns_;
  uint64_t id_ = 0;
  bool any_ = false;
};

}  // namespace

ExportFormat PerfettoExport() {
  return {.name = "perfetto",
          .title = "Trace Event JSON, which ui.perfetto.dev and chrome://tracing open",
          .lacks = "losses, marks, sizes as queued, merges, the wall clock; nothing reads it back",
          .make = [](ExportOutput* output) { return std::make_unique<Perfetto>(output); }};
}

}  // namespace blktape
