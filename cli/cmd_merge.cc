#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/quantity.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/print.h"
#include "format/trace_merger.h"

namespace blktape {
namespace {

struct MergeOptions {
  std::vector<std::string> traces;
  std::string output;
  std::string clock = "wall";
};

std::string Signed(int64_t ns) {
  if (ns == 0) return "unchanged";
  if (ns == INT64_MIN) ++ns;
  return (ns < 0 ? "-" : "+") + FormatDurationNs(ns < 0 ? -ns : ns);
}

int RunMerge(const MergeOptions& options) {
  if (options.traces.size() < 2) return UsageError("blktape merge: give two traces or more");
  if (options.output.empty()) return UsageError("blktape merge: where to write? Give -o FILE");
  const MergeClock clock = options.clock == "wall"   ? MergeClock::kWall
                           : options.clock == "same" ? MergeClock::kSame
                                                     : MergeClock::kStart;
  const Result<MergeReport> report = MergeTraces(options.traces, options.output, clock);
  if (!report.ok()) return Fail(report.status());
  std::string said = "wrote     " + options.output + ": " + FormatCounted(report->records, "I/O") +
                     " of " + std::to_string(options.traces.size()) + " traces\n";
  for (size_t i = 0; i < options.traces.size(); ++i) {
    said += "times     " + options.traces[i] + ": " + Signed(report->shifts_ns[i]) + "\n";
  }
  for (const MergeReport::PidMove& move : report->pid_moves) {
    said += "pids      " + options.traces[move.trace] + ": " +
            (move.first == 0 ? "" : "from " + std::to_string(move.first) + " on ") +
            (move.by < 0 ? "" : "+") + std::to_string(move.by) +
            ", so that its threads are nobody else's\n";
  }
  for (const std::string& renamed : report->renamed) said += "device    " + renamed + "\n";
  if (report->late > 0) {
    said +=
        "note      out of order in their own trace: " + FormatCounted(report->late, "I/O") + "\n";
  }
  if (report->lost_events > 0) {
    said += "missing   " + FormatCounted(report->lost_events, "event") + "\n";
  }
  if (report->unknown_messages > 0) {
    said +=
        "left out  " + FormatCounted(report->unknown_messages, "message") + " of a newer version\n";
  }
  Print(stdout, said);
  return report->lost_events > 0 || report->unknown_messages > 0 ? kExitDegraded : kExitOk;
}

}  // namespace

Command MergeCommand() {
  return {
      .name = "merge",
      .summary = "Merge several traces into one, on one clock",
      .examples =
          "blktape merge web.tape db.tape -o both.tape\n"
          "blktape merge sda.tape sdb.tape --clock same -o disks.tape\n"
          "blktape merge a.tape b.tape --clock start -o together.tape",
      .declare = [](Flags* flags) -> std::function<int()> {
        const auto options = std::make_shared<MergeOptions>();
        flags->PositionalList("TRACE", &options->traces, "Two traces or more");
        flags->Text("-o,--output", &options->output, "The trace to write; never overwritten",
                    "FILE");
        flags->Choice("--clock", &options->clock, {"wall", "same", "start"},
                      "How to align the clocks: wall, by the wall clock that each trace stores (as "
                      "exact as the machines' clocks agree); same, unchanged, for traces of one "
                      "machine during one boot; start, so that the first I/Os coincide");
        return [options] { return RunMerge(*options); };
      },
  };
}

}  // namespace blktape
