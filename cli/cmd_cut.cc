#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.h"
#include "base/status.h"
#include "capture/session/record_filter.h"
#include "cli/command.h"
#include "cli/print.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "format/trace_copier.h"
#include "format/trace_piece.h"
#include "format/trace_reader.h"
#include "format/trace_writer.h"

namespace blktape {
namespace {

struct CutOptions {
  std::string trace;
  std::string output;
  int64_t from_ns = 0;
  int64_t to_ns = 0;
  std::vector<std::string> devices;
  std::vector<std::string> processes;
  std::vector<std::string> ops;
  std::vector<std::string> ranges;
  std::string sizes;
};

// "4k", "4k-64k", "1M-": smallest and largest.
struct SizeRange {
  uint64_t least = 0;
  uint64_t most = UINT64_MAX;
};

Result<SizeRange> ParseSizeRange(const std::string& text) {
  SizeRange range;
  const size_t dash = text.find('-');
  ASSIGN_OR_RETURN(range.least, ParseBytes(std::string_view(text).substr(0, dash)));
  if (dash == std::string::npos) {
    range.most = range.least;
  } else if (dash + 1 < text.size()) {
    ASSIGN_OR_RETURN(range.most, ParseBytes(std::string_view(text).substr(dash + 1)));
  }
  if (range.most < range.least) {
    return Status(StatusCode::kInvalidArgument, "--size " + text + ": ends before it begins");
  }
  return range;
}

bool Contains(const std::vector<std::string>& names, std::string_view name) {
  for (const std::string& one : names) {
    if (one == name) return true;
  }
  return false;
}

class Cutter : public TraceCopier {
 public:
  Status Prepare(const CutOptions& options, const Flags& flags) {
    if (flags.Given("--from")) from_ns_ = options.from_ns;
    if (flags.Given("--to")) to_ns_ = options.to_ns;
    if (from_ns_ && to_ns_ && *from_ns_ >= *to_ns_) {
      return Status(StatusCode::kInvalidArgument, "--from must lie before --to");
    }
    processes_ = options.processes;
    for (const std::string& ops : options.ops) RETURN_IF_ERROR(filter_.AddOps(ops));
    for (const std::string& range : options.ranges) RETURN_IF_ERROR(filter_.AddRange(range));
    if (!options.sizes.empty()) {
      ASSIGN_OR_RETURN(sizes_, ParseSizeRange(options.sizes));
    }
    words_ = filter_.Words();
    if (from_ns_) words_.push_back("from " + FormatDurationNs(*from_ns_));
    if (to_ns_) words_.push_back("to " + FormatDurationNs(*to_ns_));
    for (const std::string& name : options.devices) words_.push_back("device=" + name);
    for (const std::string& name : processes_) words_.push_back("process=" + name);
    if (!options.sizes.empty()) words_.push_back("size=" + options.sizes);
    if (words_.empty()) {
      return Status(StatusCode::kInvalidArgument,
                    "blktape cut: what to keep? Give --from, --to, --device, --process, --op, "
                    "--lba or --size");
    }
    return OkStatus();
  }

  // Of the trace's devices those to keep; fails if it has none of a name.
  Status ChooseDevices(const CutOptions& options, const proto::Header& header) {
    devices_.assign(static_cast<size_t>(header.devices_size()), options.devices.empty());
    for (const std::string& name : options.devices) {
      bool found = false;
      for (int i = 0; i < header.devices_size(); ++i) {
        if (header.devices(i).name() != name) continue;
        devices_[static_cast<size_t>(i)] = found = true;
      }
      if (found) continue;
      std::string known;
      for (const proto::Device& device : header.devices()) known += " " + device.name();
      return Status(StatusCode::kInvalidArgument,
                    "--device " + name + ": the trace has" + (known.empty() ? " none" : known));
    }
    return OkStatus();
  }
  // When the whole trace began, where that is known.
  void BeginAt(std::optional<int64_t> first_ns) { first_ns_ = first_ns; }

  const std::vector<std::string>& words() const { return words_; }
  const std::optional<int64_t>& from_ns() const { return from_ns_; }
  const ArrivalSpan& met() const { return met_; }
  uint64_t left_out() const { return left_out_; }

 private:
  // Times of a trace may be anything: wraps rather than overflows.
  int64_t SinceFirst(int64_t ns) const {
    return static_cast<int64_t>(static_cast<uint64_t>(ns) -
                                static_cast<uint64_t>(first_ns_.value_or(ns)));
  }
  bool InTime(int64_t ns) const {
    const int64_t since_ns = SinceFirst(ns);
    return (!from_ns_ || since_ns >= *from_ns_) && (!to_ns_ || since_ns < *to_ns_);
  }

  bool Edit(IoRecord* record, std::string_view process) override {
    const std::optional<int64_t> arrival_ns = record->arrival_ns();
    met_.Add(arrival_ns);
    if (!first_ns_) first_ns_ = arrival_ns;
    const bool keep = devices_[record->device] && (!arrival_ns || InTime(*arrival_ns)) &&
                      (processes_.empty() || Contains(processes_, process)) &&
                      filter_.Keeps(*record) && record->bytes >= sizes_.least &&
                      record->bytes <= sizes_.most;
    left_out_ += !keep;
    return keep;
  }
  // A loss without a place in time may lie anywhere, and stays.
  bool EditLoss(proto::Loss* loss) override {
    if (loss->has_device() && loss->device() < devices_.size() && !devices_[loss->device()]) {
      return false;
    }
    const bool before =
        from_ns_ && loss->has_to_ns() && first_ns_ && SinceFirst(loss->to_ns()) < *from_ns_;
    const bool after =
        to_ns_ && loss->has_from_ns() && first_ns_ && SinceFirst(loss->from_ns()) >= *to_ns_;
    return !before && !after;
  }
  bool EditMark(proto::Mark* mark) override { return !first_ns_ || InTime(mark->at_ns()); }
  // Of what software asked for nobody knows when, by whom and where.
  bool KeepsQueuedSizes() const override { return false; }

  std::optional<int64_t> from_ns_, to_ns_;
  std::vector<bool> devices_;
  std::vector<std::string> processes_;
  RecordFilter filter_;
  SizeRange sizes_;
  std::vector<std::string> words_;
  std::optional<int64_t> first_ns_;
  ArrivalSpan met_;
  uint64_t left_out_ = 0;
};

Result<int> Cut(const CutOptions& options, const Flags& flags) {
  Cutter cutter;
  RETURN_IF_ERROR(cutter.Prepare(options, flags));
  ASSIGN_OR_RETURN(const std::unique_ptr<TraceReader> reader,
                   TraceReader::Open(options.trace, &cutter));
  RETURN_IF_ERROR(cutter.ChooseDevices(options, reader->header()));
  if (reader->summary() && reader->summary()->has_first_ns()) {
    cutter.BeginAt(reader->summary()->first_ns());
    int64_t begin_ns = 0;
    if (cutter.from_ns()) {
      RETURN_IF_ERROR(CheckPieceBegins(*cutter.from_ns(), reader->summary(), cutter.met()));
      // Without an index it is read from the start, to the same end.
      if (!__builtin_add_overflow(reader->summary()->first_ns(), *cutter.from_ns(), &begin_ns)) {
        (void)reader->SkipTo(begin_ns);
      }
    }
  }
  proto::Header header = reader->header();
  for (const std::string& word : cutter.words()) header.add_filters(word);
  ASSIGN_OR_RETURN(const std::unique_ptr<TraceWriter> writer,
                   TraceWriter::Create(options.output, header));
  RETURN_IF_ERROR(cutter.Copy(reader.get(), writer.get()));
  proto::Summary extra;
  if (reader->summary()) {
    if (reader->summary()->has_end()) *extra.mutable_end() = reader->summary()->end();
    if (reader->summary()->has_replay()) *extra.mutable_replay() = reader->summary()->replay();
    extra.set_filtered(reader->summary()->filtered());
  }
  extra.set_filtered(extra.filtered() + cutter.left_out());
  const uint64_t records = writer->records();
  RETURN_IF_ERROR(writer->Finish(extra));
  Print(stdout, "wrote     " + options.output + ": " + FormatCount(records) + " I/Os\n");
  Print(stdout, "left out  " + FormatCount(cutter.left_out()) +
                    " I/Os, and those before the piece\n"
                    "left out  sizes as queued before merging, of which nobody knows when\n");
  return reader->lost_events() > 0 ? kExitDegraded : kExitOk;
}

}  // namespace

Command CutCommand() {
  return {
      .name = "cut",
      .summary = "Make a trace of a part of one",
      .examples =
          "blktape cut monday.tape --from 60m --to 65m -o spike.tape\n"
          "blktape cut monday.tape --process dpkg --op read,write -o upgrade.tape\n"
          "blktape cut monday.tape --device sda --lba 0-2097151 --size 4k -o small.tape",
      .declare = [](Flags* flags) -> std::function<int()> {
        const auto options = std::make_shared<CutOptions>();
        flags->Positional("TRACE", &options->trace,
                          "A .tape or .tape.partial file; - is standard input");
        flags->Text("-o,--output", &options->output, "The trace to write; never overwritten",
                    "FILE");
        flags->Duration("--from", &options->from_ns,
                        "Only I/Os that arrived so long after the first or later");
        flags->Duration("--to", &options->to_ns, "Only I/Os that arrived before that");
        flags->TextList("--device", &options->devices, "Only of this device; again for more",
                        "NAME");
        flags->TextList("--process", &options->processes, "Only of this process; again for more",
                        "NAME");
        flags->TextList("--op", &options->ops,
                        "Only these operations: read,write,discard,flush ...", "OPS");
        flags->TextList("--lba", &options->ranges,
                        "Only I/Os that touch these sectors (512 bytes), as in 0-2047 or 4096-, "
                        "and flushes, which have no address; again for more",
                        "RANGE");
        flags->Text("--size", &options->sizes,
                    "Only of this size, or from one to another: 4k, 4k-64k, 1M-", "RANGE");
        return [options, flags]() -> int {
          if (options->output.empty()) {
            return UsageError("blktape cut: where to write? Give -o FILE");
          }
          const Result<int> code = Cut(*options, *flags);
          return code.ok() ? *code : Fail(code.status());
        };
      },
  };
}

}  // namespace blktape
