#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <string>

#include "base/quantity.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/print.h"
#include "format/trace_anonymizer.h"

namespace blktape {
namespace {

struct Options {
  std::string trace;
  std::string output;
  bool keep_addresses = false;
  bool keep_wall_clock = false;
  bool keep_process_names = false;
};

int RunAnonymize(const Options& options) {
  if (options.output.empty()) return UsageError("blktape anonymize: where to write? Give -o FILE");
  AnonymizeOptions how;
  how.shuffle_addresses = !options.keep_addresses;
  how.keep_wall_clock = options.keep_wall_clock;
  how.keep_process_names = options.keep_process_names;
  std::random_device random;  // the kernel's; nobody can guess it, and it is not kept
  how.seed = static_cast<uint64_t>(random()) << 32 | random();
  const Result<AnonymizeReport> report = AnonymizeTrace(options.trace, options.output, how);
  if (!report.ok()) return Fail(report.status());
  std::string said =
      "wrote     " + options.output + ": " + FormatCounted(report->records, "I/O") + "\n";
  said += "processes " +
          (options.keep_process_names ? std::string("as they were")
                                      : FormatCounted(report->processes, "name") + " replaced") +
          "\n";
  if (options.keep_addresses) {
    said += "addresses as they were\n";
  } else {
    said += "addresses " + FormatCounted(report->islands, "place") + " exchanged\n";
    if (report->still_devices > 0) {
      said += "note      of " + FormatCounted(report->still_devices, "device") +
              " all that was touched adjoins: nothing to exchange\n";
    }
    if (report->wide_discards > 0) {
      said += "note      discards that span several places, and went with the first: " +
              FormatCount(report->wide_discards) + "\n";
    }
  }
  said += "What remains in it: docs/privacy.md\n";
  Print(stdout, said);
  return report->lost_events > 0 ? kExitDegraded : kExitOk;
}

}  // namespace

Command AnonymizeCommand() {
  return {
      .name = "anonymize",
      .summary = "Make a copy of a trace without names, to pass on to others",
      .examples =
          "blktape anonymize monday.tape -o public.tape\n"
          "blktape anonymize monday.tape --keep-process-names -o public.tape",
      .declare = [](Flags* flags) -> std::function<int()> {
        const auto options = std::make_shared<Options>();
        flags->Positional("TRACE", &options->trace, "A .tape or .tape.partial file; read twice");
        flags->Text("-o,--output", &options->output, "The trace to write; never overwritten",
                    "FILE");
        flags->Switch("--keep-addresses", &options->keep_addresses,
                      "Keep all addresses. Without this, touched areas change places in pieces of "
                      "1 MiB or more: sequences, overwrites, alignment and footprint stay the "
                      "same, distances between areas change");
        flags->Switch("--keep-wall-clock", &options->keep_wall_clock,
                      "Keep date, time and time zone");
        flags->Switch("--keep-process-names", &options->keep_process_names, "Keep process names");
        return [options] { return RunAnonymize(*options); };
      },
  };
}

}  // namespace blktape
