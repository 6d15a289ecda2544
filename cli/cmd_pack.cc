#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/quantity.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/print.h"
#include "format/trace_copier.h"
#include "format/trace_writer.h"

namespace blktape {
namespace {

struct PackOptions {
  std::string trace;
  std::string output;
};

int RunPack(const PackOptions& options) {
  if (options.output.empty()) return UsageError("blktape pack: where to write? Give -o FILE");
  std::error_code error;
  const uintmax_t before = std::filesystem::file_size(options.trace, error);
  if (error) return Fail(ErrnoStatus(error.value(), options.trace));
  // What has this name is somebody else's, and stays whatever is wrong with the input.
  if (std::filesystem::exists(std::filesystem::symlink_status(options.output, error))) {
    return Fail(
        Status(StatusCode::kAlreadyExists, options.output + " exists; nothing is overwritten"));
  }
  const Result<RewriteReport> report =
      RewriteTrace(options.trace, options.output, PackedTraceOptions());
  if (!report.ok()) return Fail(report.status());
  const uintmax_t after = std::filesystem::file_size(options.output, error);
  if (error) return Fail(ErrnoStatus(error.value(), options.output));
  std::string said = "wrote     " + options.output + ": " + FormatCounted(report->records, "I/O") +
                     ", " + FormatBytes(after) + " of " + FormatBytes(before);
  if (report->records > 0) {
    said += " (" + FormatNumber(static_cast<double>(after) / static_cast<double>(report->records)) +
            " B an I/O)";
  }
  Print(stdout, said + "\n");
  return report->whole && report->lost_events == 0 ? kExitOk : kExitDegraded;
}

}  // namespace

Command PackCommand() {
  return {
      .name = "pack",
      .summary = "Make a trace smaller, at the cost of time",
      .examples = "blktape pack monday.tape -o archive.tape",
      .declare = [](Flags* flags) -> std::function<int()> {
        const auto options = std::make_shared<PackOptions>();
        flags->Positional("TRACE", &options->trace, "A .tape or .tape.partial file");
        flags->Text("-o,--output", &options->output,
                    "The trace to write; never overwritten. Every verb can read it, but a damaged "
                    "frame loses more I/Os than before",
                    "FILE");
        return [options] { return RunPack(*options); };
      },
  };
}

}  // namespace blktape
