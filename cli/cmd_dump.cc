#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/quantity.h"
#include "base/status.h"
#include "base/units.h"
#include "base/utf8.h"
#include "capture/export/csv_row.h"
#include "cli/command.h"
#include "cli/loss_text.h"
#include "format/io_record.h"
#include "format/trace_piece.h"
#include "format/trace_reader.h"

namespace blktape {
namespace {

struct DumpOptions {
  std::string trace;
  bool csv = false;
  bool result = false;
  int64_t from_ns = 0;
  int64_t to_ns = 0;
};

// Times of a trace may be anything: wraps rather than overflows.
int64_t Difference(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

// Rows gather here and go to stdout in large pieces.
class Rows {
 public:
  Rows(const TraceReader* reader, bool result) : reader_(*reader), result_(result) {}

  void CsvHeader() {
    Append(kCsvColumns);
    Append(result_ ? ",ordinal,backlog_ns\n" : "\n");
  }

  void Csv(const IoRecord& io) {
    AppendCsvRow(io, Device(io), Process(io), &text_);
    if (result_) {
      const auto out = std::back_inserter(text_);
      io.ordinal ? fmt::format_to(out, ",{},", *io.ordinal) : fmt::format_to(out, ",,");
      if (io.backlog_ns) fmt::format_to(out, "{}", *io.backlog_ns);
    }
    Append("\n");
  }

  void TableHeader() {
    fmt::format_to(std::back_inserter(text_), kTableRow, "time s", "device", "op", "flags", "lba",
                   "size", "d2c", "process");
    EndTableRow();
  }

  void Table(const IoRecord& io, std::optional<int64_t> since_first_ns) {
    std::string time, d2c;
    if (since_first_ns) {
      time = fmt::format("{:.6f}", static_cast<double>(*since_first_ns) / kNanosPerSecond);
    }
    if (io.issue_ns && io.complete_ns) {
      d2c = FormatDurationNs(Difference(*io.complete_ns, *io.issue_ns));
    }
    fmt::format_to(std::back_inserter(text_), kTableRow, time, ToPrintable(Device(io)),
                   OpName(io.op), FlagLetters(io.flags),
                   io.lba ? std::to_string(io.lba->sectors) : "", FormatBytes(io.bytes), d2c,
                   ToPrintable(Process(io)));
    EndTableRow();
  }

  // False when stdout takes no more; errno says why.
  bool FlushIfLarge() { return text_.size() < kFlushBytes || Flush(); }
  bool Flush() {
    const bool written = std::fwrite(text_.data(), 1, text_.size(), stdout) == text_.size() &&
                         std::fflush(stdout) == 0;
    text_.clear();
    return written;
  }

 private:
  static constexpr size_t kFlushBytes = 1 << 18;
  static constexpr const char* kTableRow = "{:>12} {:7} {:8} {:5} {:>10} {:>8} {:>7} {}";

  // What is not known at the end of a row leaves no blanks there.
  void EndTableRow() {
    while (text_.size() > 0 && text_[text_.size() - 1] == ' ') text_.resize(text_.size() - 1);
    text_.push_back('\n');
  }

  void Append(std::string_view text) { text_.append(text.data(), text.data() + text.size()); }

  std::string_view Device(const IoRecord& io) const {
    return reader_.header().devices(static_cast<int>(io.device)).name();
  }
  std::string_view Process(const IoRecord& io) const {
    return io.process ? reader_.ProcessName(*io.process) : std::string_view();
  }

  const TraceReader& reader_;
  const bool result_;
  fmt::memory_buffer text_;
};

int RunDump(const DumpOptions& options, const Flags& flags) {
  const bool from = flags.Given("--from");
  const bool to = flags.Given("--to");
  if (from && to && options.from_ns >= options.to_ns) {
    return UsageError("--from must lie before --to");
  }
  if (options.result && !options.csv) return UsageError("--result goes with --csv");
  LossLog losses;
  const auto opened = TraceReader::Open(options.trace, &losses);
  if (!opened.ok()) return Fail(opened.status());
  TraceReader& reader = **opened;
  std::optional<int64_t> first_ns = FirstArrival(reader.summary());
  ArrivalSpan met;
  if (from && reader.summary()) {
    const Status begins = CheckPieceBegins(options.from_ns, reader.summary(), met);
    if (!begins.ok()) return Fail(begins);
  }
  // Without an index it is read from the start, to the same end.
  int64_t begin_ns = 0;
  if (from && first_ns && !__builtin_add_overflow(*first_ns, options.from_ns, &begin_ns)) {
    (void)reader.SkipTo(begin_ns);
  }

  Rows rows(&reader, options.result);
  options.csv ? rows.CsvHeader() : rows.TableHeader();
  const Status read = ForEachRecord(&reader, [&](const IoRecord& io) {
    const std::optional<int64_t> arrival_ns = io.arrival_ns();
    met.Add(arrival_ns);
    if (!first_ns) first_ns = arrival_ns;
    std::optional<int64_t> since_first_ns;
    if (arrival_ns) since_first_ns = Difference(*arrival_ns, *first_ns);
    if (from && since_first_ns.value_or(options.from_ns) < options.from_ns) return OkStatus();
    if (to && since_first_ns.value_or(0) >= options.to_ns) return OkStatus();
    options.csv ? rows.Csv(io) : rows.Table(io, since_first_ns);
    return rows.FlushIfLarge() ? OkStatus() : ErrnoStatus(errno, "standard output");
  });
  // What was read before a failure is printed as well.
  const Status flushed = rows.Flush() ? OkStatus() : ErrnoStatus(errno, "standard output");
  if (!read.ok()) return Fail(read);
  if (!flushed.ok()) return Fail(flushed);
  losses.Warn(std::string(reader.name()));
  if (from) {
    const Status begins = CheckPieceBegins(options.from_ns, reader.summary(), met);
    if (!begins.ok()) return Fail(begins);
  }
  return reader.lost_events() > 0 ? kExitDegraded : kExitOk;
}

}  // namespace

Command DumpCommand() {
  return {
      .name = "dump",
      .summary = "Print every I/O of a trace, as a table or as CSV",
      .examples =
          "blktape dump monday.tape | less\n"
          "blktape dump monday.tape --csv > monday.csv\n"
          "blktape dump monday.tape --from 60m --to 65m",
      .declare = [](Flags* flags) -> std::function<int()> {
        const auto options = std::make_shared<DumpOptions>();
        flags->Positional("TRACE", &options->trace,
                          "A .tape or .tape.partial file; - is standard input");
        flags->Switch(
            "--csv", &options->csv,
            "One row per I/O under a header line: times in ns on the trace's monotonic clock, lba "
            "in 512-byte sectors, flags joined by +; unknown values are empty");
        flags->Switch(
            "--result", &options->result,
            "With --csv, for the result of a replay: also the index of the replayed record "
            "(ordinal) and the drive's part of the time before submission (backlog)");
        flags->Duration("--from", &options->from_ns,
                        "Only I/Os that arrived this long after the first one, or later");
        flags->Duration("--to", &options->to_ns,
                        "Only I/Os that arrived earlier than this after the first one");
        return [options, flags] { return RunDump(*options, *flags); };
      },
  };
}

}  // namespace blktape
