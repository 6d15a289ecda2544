#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/quantity.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/piece.h"
#include "cli/print.h"
#include "format/io_record.h"
#include "format/partial_file.h"
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
  PieceFlags piece;
};

class Cutter : public TraceCopier {
 public:
  explicit Cutter(Piece piece) : piece_(std::move(piece)) {}

  Status ChooseDevices(const proto::Header& header) { return piece_.ChooseDevices(header); }
  // Leaves out frames without a record of the piece. Anchors have to be met.
  void SkipFrames(TraceReader* reader) const {
    const std::function<bool(const proto::FrameContents&)> wanted = piece_.FramesToRead(*reader);
    if (wanted == nullptr) return;
    reader->SkipFramesUnless([wanted](const proto::FrameContents& contents) {
      return contents.anchors() || wanted(contents);
    });
  }
  // When the whole trace began, where that is known.
  void BeginAt(std::optional<int64_t> first_ns) { first_ns_ = first_ns; }

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
    return (!piece_.from_ns() || since_ns >= *piece_.from_ns()) &&
           (!piece_.to_ns() || since_ns < *piece_.to_ns());
  }

  bool Edit(IoRecord* record, std::string_view process) override {
    const std::optional<int64_t> arrival_ns = record->arrival_ns();
    met_.Add(arrival_ns);
    if (!first_ns_) first_ns_ = arrival_ns;
    const bool keep = (!arrival_ns || InTime(*arrival_ns)) && piece_.KeepsProcess(process) &&
                      piece_.Keeps(*record);
    left_out_ += !keep;
    return keep;
  }
  // A loss without a place in time may lie anywhere, and stays.
  bool EditLoss(proto::Loss* loss) override {
    // The reader tells of none that the header does not have.
    if (loss->has_device() && !piece_.KeepsDevice(loss->device())) return false;
    const bool before = piece_.from_ns() && loss->has_to_ns() && first_ns_ &&
                        SinceFirst(loss->to_ns()) < *piece_.from_ns();
    const bool after = piece_.to_ns() && loss->has_from_ns() && first_ns_ &&
                       SinceFirst(loss->from_ns()) >= *piece_.to_ns();
    return !before && !after;
  }
  bool EditMark(proto::Mark* mark) override { return !first_ns_ || InTime(mark->at_ns()); }
  // Of what software asked for nobody knows when, by whom and where.
  bool KeepsQueuedSizes() const override { return false; }

  Piece piece_;
  std::optional<int64_t> first_ns_;
  ArrivalSpan met_;
  uint64_t left_out_ = 0;
};

Result<int> Cut(const CutOptions& options, const Flags& flags) {
  ASSIGN_OR_RETURN(const Piece piece, Piece::Of(options.piece, flags));
  if (piece.Words().empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "blktape cut: what to keep? Give --from, --to, --device, --process, --op, "
                  "--lba or --size");
  }
  Cutter cutter(piece);
  ASSIGN_OR_RETURN(const std::unique_ptr<TraceReader> reader,
                   TraceReader::Open(options.trace, &cutter));
  RETURN_IF_ERROR(cutter.ChooseDevices(reader->header()));
  if (reader->summary() && reader->summary()->has_first_ns()) {
    cutter.BeginAt(reader->summary()->first_ns());
    int64_t begin_ns = 0;
    if (piece.from_ns()) {
      RETURN_IF_ERROR(CheckPieceBegins(*piece.from_ns(), reader->summary(), cutter.met()));
      // Without an index it is read from the start, to the same end.
      if (!__builtin_add_overflow(reader->summary()->first_ns(), *piece.from_ns(), &begin_ns)) {
        (void)reader->SkipTo(begin_ns);
      }
    }
  }
  cutter.SkipFrames(reader.get());
  proto::Header header = reader->header();
  for (const std::string& word : piece.Words()) header.add_filters(word);
  ASSIGN_OR_RETURN(const std::unique_ptr<TraceWriter> writer,
                   TraceWriter::Create(options.output, header));
  RETURN_IF_ERROR(cutter.Copy(reader.get(), writer.get()));
  if (cutter.unknown_columns() > 0) {
    std::remove(PartialPath(options.output).c_str());
    return UnknownColumns(options.trace, reader->header());
  }
  proto::Summary extra;
  if (!cutter.IsWhole(*reader)) extra.set_recovered(true);
  if (reader->summary()) {
    if (reader->summary()->has_end()) *extra.mutable_end() = reader->summary()->end();
    if (reader->summary()->has_replay()) *extra.mutable_replay() = reader->summary()->replay();
    extra.set_filtered(reader->summary()->filtered());
  }
  const uint64_t left_out = cutter.left_out() + reader->skipped_records();
  extra.set_filtered(extra.filtered() + left_out);
  const uint64_t records = writer->records();
  RETURN_IF_ERROR(writer->Finish(extra));
  Print(stdout, "wrote     " + options.output + ": " + FormatCounted(records, "I/O") + "\n");
  Print(stdout, "left out  " + FormatCounted(left_out, "I/O") +
                    ", and those before the piece\n"
                    "left out  sizes as queued before merging, of which nobody knows when\n");
  return reader->lost_events() > 0 ? kExitDegraded : kExitOk;
}

}  // namespace

Command CutCommand() {
  return {
      .name = "cut",
      .summary = "Copy a part of a trace",
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
        options->piece.Declare(flags);
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
