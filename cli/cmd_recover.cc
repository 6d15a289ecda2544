#include <cerrno>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/quantity.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/loss_text.h"
#include "format/recover.h"
#include "format/trace_reader.h"

namespace blktape {
namespace {

constexpr std::string_view kPartialSuffix = ".partial";

struct RecoverOptions {
  std::string input;
  std::string output;
};

int RunRecover(const RecoverOptions& options) {
  std::string output = options.output;
  if (output.empty()) {
    if (!options.input.ends_with(kPartialSuffix)) {
      return UsageError(options.input + " does not end in .partial\n  try:  -o OUT");
    }
    output = options.input.substr(0, options.input.size() - kPartialSuffix.size());
  }
  const Result<RecoverReport> report = RecoverTrace(options.input, output);
  if (!report.ok()) return Fail(report.status());
  if (options.output.empty()) {
    // All that could be read of it now stands, on stable storage, under its final name.
    if (std::remove(options.input.c_str()) != 0) {
      return Fail(ErrnoStatus(errno, options.input + ": remove"));
    }
    if (const Status synced = SyncFolderOf(options.input); !synced.ok()) return Fail(synced);
  }
  std::printf("%s: %s I/Os recovered\n", output.c_str(), FormatCount(report->records).c_str());
  if (report->was_whole) {
    std::printf("  the recording was finished and whole; only its name was missing\n");
  }
  const auto recovered = TraceReader::Open(output);
  if (!recovered.ok()) return Fail(recovered.status());
  const LossTally losses = TallyOf(*(*recovered)->summary());
  for (const auto& [reason, total] : losses.by_reason()) {
    std::printf("  %s: %s\n", LossReasonName(reason), LossAmount(total).c_str());
  }
  return report->lost_events > 0 ? kExitDegraded : kExitOk;
}

}  // namespace

Command RecoverCommand() {
  return {
      .name = "recover",
      .summary = "Make a finished trace of one whose recorder died, or of a damaged one",
      .examples =
          "blktape recover monday.tape.partial\n"
          "blktape recover damaged.tape -o repaired.tape",
      .declare = [](Flags* flags) -> std::function<int()> {
        const auto options = std::make_shared<RecoverOptions>();
        flags->Positional("TRACE", &options->input,
                          "A .tape.partial file, or a .tape with damage in it");
        flags->Text("-o,--output", &options->output,
                    "The new trace; TRACE is then kept. Without it TRACE without .partial, "
                    "and the .partial goes once the new trace is safely on the disk",
                    "FILE");
        return [options] { return RunRecover(*options); };
      },
  };
}

}  // namespace blktape
