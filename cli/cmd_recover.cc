#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/file.h"
#include "base/quantity.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/loss_text.h"
#include "format/partial_file.h"
#include "format/recover.h"
#include "format/trace_reader.h"

namespace blktape {
namespace {

constexpr std::string_view kRecordingSuffix = ".tape.partial";

struct RecoverOptions {
  std::string input;
  std::string output;
};

int RecoverOne(const RecoverOptions& options) {
  std::string output = options.output;
  if (output.empty()) {
    if (!options.input.ends_with(kPartialSuffix)) {
      return UsageError(options.input + " does not end in .partial\n  try:  -o OUT");
    }
    output = options.input.substr(0, options.input.size() - kPartialSuffix.size());
  }
  std::error_code untimed;
  const auto written = std::filesystem::last_write_time(options.input, untimed);
  const Result<RecoverReport> report = RecoverTrace(options.input, output);
  if (!report.ok()) return Fail(report.status());
  if (options.output.empty()) {
    // As old as what is in it: by that `record --keep` chooses what to remove.
    if (!untimed) std::filesystem::last_write_time(output, written, untimed);
    // All that could be read of it now stands, on stable storage, under its final name.
    if (std::remove(options.input.c_str()) != 0) {
      return Fail(ErrnoStatus(errno, options.input + ": remove"));
    }
    if (const Status synced = SyncFolderOf(options.input); !synced.ok()) return Fail(synced);
  }
  std::printf("%s: %s recovered\n", output.c_str(), FormatCounted(report->records, "I/O").c_str());
  if (report->unknown_messages > 0) {
    std::printf("  %s of a newer version are kept, but this one cannot tell whether they hold\n",
                FormatCounted(report->unknown_messages, "message").c_str());
  }
  if (report->harmlessly_damaged && report->whole) {
    std::printf("  the file was damaged, but no I/O of it is missing\n");
  } else if (report->whole) {
    std::printf("  the recording was finished and whole%s\n",
                options.input.ends_with(kPartialSuffix) ? "; only its name was missing" : "");
  }
  const auto recovered = TraceReader::Open(output);
  if (!recovered.ok()) return Fail(recovered.status());
  const LossTally losses = TallyOf(*(*recovered)->summary());
  for (const auto& [reason, total] : losses.by_reason()) {
    std::printf("  %s: %s\n", LossReasonName(reason), LossAmount(total).c_str());
  }
  return report->lost_events > 0 || report->unknown_messages > 0 ? kExitDegraded : kExitOk;
}

// What recorders that died have left in a folder, as one does with --rotate.
int RecoverFolder(const RecoverOptions& options) {
  if (!options.output.empty()) {
    return UsageError(options.input + " is a folder\n  try:  without -o");
  }
  std::vector<std::string> left;
  std::error_code error;
  for (std::filesystem::directory_iterator it(options.input, error), end; !error && it != end;
       it.increment(error)) {
    const std::string path = it->path().string();
    // What is no file is no recording, whatever its name.
    std::error_code gone;
    const bool is_left = path.ends_with(kRecordingSuffix) &&
                         std::filesystem::is_regular_file(it->symlink_status(gone)) &&
                         !IsBeingWritten(path);
    if (is_left) left.push_back(path);
  }
  if (error) return Fail(ErrnoStatus(error.value(), options.input));
  std::sort(left.begin(), left.end());
  int code = kExitOk;
  for (const std::string& path : left) {
    if (std::filesystem::is_empty(path, error)) {
      // Of a power failure in its first moment.
      std::filesystem::remove(path, error);
      std::printf("%s: empty, removed\n", path.c_str());
      continue;
    }
    const int one = RecoverOne({.input = path, .output = ""});
    if (code != kExitFailed && one != kExitOk) code = one;
  }
  return code;
}

int RunRecover(const RecoverOptions& options) {
  std::error_code error;
  if (std::filesystem::is_directory(options.input, error)) return RecoverFolder(options);
  if (error) return Fail(ErrnoStatus(error.value(), options.input));
  return RecoverOne(options);
}

}  // namespace

Command RecoverCommand() {
  return {
      .name = "recover",
      .summary = "Make a finished trace from one whose recorder died, or from a damaged one",
      .examples =
          "blktape recover monday.tape.partial\n"
          "blktape recover damaged.tape -o repaired.tape\n"
          "blktape recover /var/lib/blktape",
      .declare = [](Flags* flags) -> std::function<int()> {
        const auto options = std::make_shared<RecoverOptions>();
        flags->Positional("TRACE", &options->input,
                          "A .tape.partial file, a damaged .tape, or a folder: every .tape.partial "
                          "in it except those still being recorded");
        flags->Text(
            "-o,--output", &options->output,
            "The new trace; TRACE is then kept. Without this, the new trace is TRACE without "
            ".partial, and the .partial is removed once the new trace is safely on disk",
            "FILE");
        return [options] { return RunRecover(*options); };
      },
  };
}

}  // namespace blktape
