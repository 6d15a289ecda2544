#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "capture/export/exporter.h"
#include "capture/export/text_output.h"

namespace blktape {
namespace {

// fio's HOWTO, "Trace file format v3": "us FILE ACTION [OFFSET LENGTH]", the time from the start of
// the log. The time is the I/O's arrival, as a replay must bring it. A device goes by its bare
// name, never by a path in /dev: whoever replays the log names the target (--replay_redirect).
class FioIolog : public Exporter {
 public:
  explicit FioIolog(ExportOutput* output) : output_(output) {}

  Status Begin(const proto::Header& header) override {
    ASSIGN_OR_RETURN(ByteSink* const sink, output_->File(""));
    text_.emplace(sink);
    text_->Append("fio version 3 iolog\n");
    for (const proto::Device& device : header.devices()) {
      // fio cuts words at blanks, and names at 256.
      std::string name = device.name().substr(0, 255);
      std::replace_if(
          name.begin(), name.end(),
          [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '/'; }, '_');
      if (name.empty()) name = "disk";
      while (std::find(files_.begin(), files_.end(), name) != files_.end()) name += "_";
      files_.push_back(name);
      Line("0 {} add\n", name);
    }
    for (const std::string& file : files_) Line("0 {} open\n", file);
    return OkStatus();
  }

  Status Record(const IoRecord& io, std::string_view process) override {
    const char* action = nullptr;
    switch (io.op) {
      case Op::kRead:
        action = "read";
        break;
      case Op::kWrite:
        action = "write";
        break;
      case Op::kDiscard:
        action = "trim";
        break;
      case Op::kFlush:
        action = "sync";
        break;
      default:
        LeftOut("I/Os other than reads, writes, discards and flushes");
        return OkStatus();
    }
    if ((io.flags & kFlagDerived) != 0) {
      LeftOut("flushes that the block layer made of flagged writes");
      return OkStatus();
    }
    if (io.op != Op::kFlush && (!io.lba || io.bytes == 0)) {
      LeftOut("I/Os without address or data");
      return OkStatus();
    }
    const std::optional<int64_t> arrival_ns = io.arrival_ns();
    if (arrival_ns && !first_ns_) first_ns_ = arrival_ns;
    if (!arrival_ns) {
      LeftOut("I/Os of unknown time, put where they stand");
    } else {
      const auto since_ns = static_cast<int64_t>(static_cast<uint64_t>(*arrival_ns) -
                                                 static_cast<uint64_t>(*first_ns_));
      const int64_t us = since_ns / kNanosPerMicro;
      // fio takes a time that goes back for a very long wait.
      if (us < last_us_) LeftOut("the order of I/Os that were out of order by time");
      last_us_ = std::max(last_us_, us);
      if (since_ns % kNanosPerMicro != 0) LeftOut("nanoseconds below a microsecond");
    }
    if (io.issue_ns && io.queue_ns) LeftOut("issue times");
    if (io.complete_ns) LeftOut("completion times");
    if ((io.flags & (kFlagFua | kFlagPreflush)) != 0) LeftOut("FUA and PREFLUSH flags");
    if (!process.empty() || io.pid) LeftOut("processes");
    if (io.op == Op::kFlush) {
      Line("{} {} {}\n", last_us_, files_[io.device], action);
    } else {
      Line("{} {} {} {} {}\n", last_us_, files_[io.device], action, io.lba->bytes(), io.bytes);
    }
    return text_->FlushIfLarge();
  }

  Status Finish() override {
    for (const std::string& file : files_) Line("{} {} close\n", last_us_, file);
    return text_->Flush();
  }

 private:
  template <typename... Parts>
  void Line(fmt::format_string<Parts...> format, Parts&&... parts) {
    fmt::format_to(std::back_inserter(*text_->text()), format, std::forward<Parts>(parts)...);
  }

  ExportOutput* output_;
  std::vector<std::string> files_;
  std::optional<TextOutput> text_;
  std::optional<int64_t> first_ns_;
  int64_t last_us_ = 0;
};

}  // namespace

ExportFormat FioIologExport() {
  return {.name = "fio-iolog",
          .title = "fio iolog version 3 (fio --read_iolog, with --replay_redirect=TARGET)",
          .lacks = "completions, issue times, ns, flags, processes, errors; write zeroes and zones",
          .make = [](ExportOutput* output) { return std::make_unique<FioIolog>(output); }};
}

}  // namespace blktape
