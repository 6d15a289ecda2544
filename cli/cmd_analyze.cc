#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "analysis/profile.h"
#include "analysis/profile_trace.h"
#include "base/json.h"
#include "base/new_file.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/piece.h"
#include "cli/print.h"
#include "cli/terminal.h"
#include "format/io_record.h"
#include "format/trace_reader.h"
#include "report/day_page.h"
#include "report/page.h"
#include "report/report_json.h"
#include "report/report_text.h"
#include "report/text_table.h"

namespace blktape {
namespace {

struct AnalyzeOptions {
  std::string trace;
  bool json = false;
  bool series = false;
  std::string html;
  std::string csv;
  PieceFlags piece;
  uint64_t top = kProcessRows;
};

ProfileOptions OptionsOf(const Piece& piece) {
  ProfileOptions options;
  options.from_ns = piece.from_ns();
  options.to_ns = piece.to_ns();
  if (!piece.has_filters()) return options;
  options.filters = piece.filters();
  options.processes = piece.processes();
  options.choose =
      [piece = Piece(piece)](const TraceReader& reader) mutable -> Result<ProfileOptions::Choice> {
    RETURN_IF_ERROR(piece.ChooseDevices(reader.header()));
    return ProfileOptions::Choice{
        .keeps = [piece](const IoRecord& record) { return piece.Keeps(record); },
        .frames = piece.FramesToRead(reader)};
  };
  return options;
}

int RunAnalyze(const AnalyzeOptions& options, const Flags& flags) {
  const Result<Piece> piece = Piece::Of(options.piece, flags);
  if (!piece.ok()) return UsageError(piece.status().message());
  ProfileOptions profile_options = OptionsOf(*piece);
  if (options.series && !options.json) return UsageError("--series goes with --json");
  // Before the work, so that a name that is taken or a folder that is missing is told at once.
  std::string csv = options.csv;
  while (csv.size() > 1 && csv.ends_with('/')) csv.pop_back();
  for (const std::string& path : {options.html, csv}) {
    if (path.empty()) continue;
    if (const Status free = CheckNewName(path); !free.ok()) return Fail(free);
  }
  profile_options.details = options.series || !options.html.empty() || !options.csv.empty();
  const Result<Profile> profile = ProfileTrace(options.trace, profile_options);
  if (!profile.ok()) return Fail(profile.status());
  const std::string name = std::filesystem::path(options.trace).filename().string();
  if (!options.html.empty() || !csv.empty()) {
    const Page page = DayPage(*profile, name);
    if (!options.html.empty()) {
      const Status written = WriteNewFile(options.html, PageHtml(page));
      if (!written.ok()) return Fail(written);
    }
    if (!csv.empty()) {
      const Status written = WriteNewFolder(csv, PageCsv(page));
      if (!written.ok()) return Fail(written);
    }
  }
  if (options.json) {
    Print(stdout, JsonText(ProfileJson(*profile)) + "\n");
  } else {
    const TextLook look = LookOf(STDOUT_FILENO);
    const std::string text = ProfileText(*profile, name, options.top, look);
    // Print takes the report's own colours for what would steer a terminal. Names in it are plain.
    if (look.colour) {
      std::fwrite(text.data(), 1, text.size(), stdout);
    } else {
      Print(stdout, text);
    }
  }
  return profile->DataMissing() ? kExitDegraded : kExitOk;
}

}  // namespace

Command AnalyzeCommand() {
  return {
      .name = "analyze",
      .summary = "Show the figures of a trace: sizes, mix, depth, idle, latency, footprint",
      .examples =
          "blktape analyze monday.tape\n"
          "blktape analyze monday.tape --from 1h --to 2h\n"
          "blktape analyze monday.tape --process dpkg --op write --size 4k\n"
          "blktape analyze monday.tape --html monday.html\n"
          "blktape analyze monday.tape --json | jq .d2c_ns.p99",
      .declare = [](Flags* flags) -> std::function<int()> {
        const auto options = std::make_shared<AnalyzeOptions>();
        flags->Positional("TRACE", &options->trace, "A .tape file; - is standard input");
        flags->Switch("--json", &options->json, "JSON as defined in docs/metrics.md (ns, bytes)");
        flags->Switch("--series", &options->series,
                      "With --json: also over time and by address, size, flag and process");
        flags->Text("--html", &options->html,
                    "Also write a report page with charts: one new file that needs no network",
                    "FILE");
        flags->Text("--csv", &options->csv, "Also write the page's tables, one file per table",
                    "FOLDER");
        options->piece.Declare(flags);
        flags->Count("--top", &options->top,
                     "Number of processes listed, those with most bytes (default 10)");
        return [options, flags] { return RunAnalyze(*options, *flags); };
      },
  };
}

}  // namespace blktape
