#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/quantity.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/print.h"
#include "cli/progress_line.h"
#include "cli/queue_flags.h"
#include "cli/score_session.h"
#include "cli/target_consent.h"
#include "replay/replayer.h"
#include "replay/target/queue_setting.h"
#include "report/score_report.h"

namespace blktape {
namespace {

struct ScoreOptions {
  ScoreSessionOptions session;
  std::vector<std::string> settings;
  bool json = false;
  bool published = false;
  bool create = false;
  bool yes = false;
};

// "monday-on-sdx" for /data/monday.tape on /dev/sdx.
std::string DefaultFolder(const ScoreSessionOptions& options) {
  return std::filesystem::path(options.trace_path).stem().string() + "-on-" +
         std::filesystem::path(options.target_path).filename().string();
}

Status MakeFolder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const bool empty = !error && std::filesystem::is_empty(folder, error);
  if (error) return ErrnoStatus(error.value(), folder);
  if (empty) return OkStatus();
  return Status(StatusCode::kAlreadyExists, folder +
                                                " is there already and not empty\n"
                                                "  try:  -o DIR with a new name");
}

// Nothing of the target is in the folder: the next attempt may have the name again. What others may
// have put there meanwhile stays, and the folder with it.
void RemoveReference(const std::string& folder) {
  std::error_code ignored;
  for (const char* name : {"reference-timed.tape", "reference-max.tape", "cycle-1-timed.tape"}) {
    std::filesystem::remove(folder + "/" + name, ignored);
    std::filesystem::remove(folder + "/" + name + ".partial", ignored);
  }
  std::filesystem::remove(folder, ignored);
}

Status WriteWhole(const std::string& path, const std::string& text) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ByteSink> sink, CreateFile(path));
  RETURN_IF_ERROR(sink->Write(std::as_bytes(std::span(text.data(), text.size()))));
  return sink->Sync();
}

// The whole score, repeats included: how long it may still take.
class TimeLeft {
 public:
  void Begin(int64_t estimated_ns, uint64_t cycles) {
    cycle_ns_ = estimated_ns / static_cast<int64_t>(cycles);
    end_ns_ = Clock::Monotonic()->NowNs() + estimated_ns;
  }
  void Repeat() { end_ns_ += cycle_ns_; }
  std::string Text() const {
    const int64_t left_ns = end_ns_ - Clock::Monotonic()->NowNs();
    return left_ns > kNanosPerSecond ? ", about " + FormatDurationNs(left_ns) + " left in all" : "";
  }

 private:
  int64_t end_ns_ = 0;
  int64_t cycle_ns_ = 0;
};

std::string ProgressText(const std::string& label, const ReplayProgress& now) {
  return label + ": " + std::to_string(static_cast<int>(now.fraction * 100)) + " %, " +
         FormatCount(now.completed) + " I/Os" +
         (now.errors > 0 ? ", " + FormatCount(now.errors) + " errors" : "");
}

int RunScore(ScoreOptions options, const Flags& flags) {
  ScoreSessionOptions& session = options.session;
  if (session.target_path.empty()) {
    return UsageError(
        "which drive is to be scored?\n"
        "  try:  --target /dev/sdX, or --target FILE for a scratch file");
  }
  const uint64_t least = options.published ? kLeastCyclesPublished : uint64_t{1};
  if (options.published && !flags.Given("--cycles")) session.cycles = kLeastCyclesPublished;
  if (session.cycles < least || session.cycles > kMostCycles) {
    return UsageError("--cycles must be " + std::to_string(least) + " to " +
                      std::to_string(kMostCycles));
  }
  session.until_precise = options.published;
  if (session.folder.empty()) session.folder = DefaultFolder(session);

  Result<std::vector<QueueSetting>> settings = ParseQueueSettings(options.settings);
  if (!settings.ok()) return Fail(settings.status());
  session.queue_settings = *std::move(settings);
  TellRestoredQueues();

  // What the target or the trace forbids is said before anything is left behind.
  ReplayOptions preview;
  preview.trace_path = session.trace_path;
  preview.mappings.push_back({.device = "", .target_path = session.target_path});
  preview.overwrite = session.overwrite;
  preview.scored = true;
  preview.unsupported = session.unsupported;
  preview.queue_settings = session.queue_settings;
  const std::atomic<bool>& stop = StopOnSignals();
  if (Status made = CreateScratchTargets(preview, options.create, stop); !made.ok()) {
    return Fail(made);
  }
  const Result<ReplayPreview> planned = PreviewReplay(preview, /*whole=*/false, stop);
  if (!planned.ok()) return Fail(planned.status());
  TellShared(*planned, /*way_out=*/"");
  if (ChangesDevices(preview, *planned) && !options.yes) {
    if (Status confirmed = ConfirmOverwrite(*planned, stop); !confirmed.ok())
      return Fail(confirmed);
  }
  session.identities = planned->identities;
  if (const Status made = MakeFolder(session.folder); !made.ok()) return Fail(made);

  const bool terminal = isatty(STDERR_FILENO) != 0;
  ProgressLine line;
  TimeLeft left;
  const ScoreSessionEvents events{
      .on_begin =
          [&](int64_t estimated_ns) {
            line.Clear();
            left.Begin(estimated_ns, session.cycles);
            if (!terminal && estimated_ns < 600 * kNanosPerSecond) return;
            std::fprintf(stderr, "%s%s cycles on %s take about %s\n",
                         options.published ? "at least " : "",
                         std::to_string(session.cycles).c_str(), session.target_path.c_str(),
                         FormatDurationNs(estimated_ns).c_str());
          },
      .on_run = [&line](const std::string& label) { line.Show(label); },
      .on_repeat =
          [&](const RepeatedCycle& cycle) {
            line.Clear();
            left.Repeat();
            Print(stderr, "measured again: " + cycle.reasons.front().Sentence() + "\n");
          },
      .on_progress =
          [&](const std::string& label, const ReplayProgress& now) {
            line.Show(ProgressText(label, now) + left.Text());
          },
  };
  const Result<ScoreReport> report =
      RunScoreSession(session, RunReplay, Clock::Monotonic(), stop, events);
  line.Clear();
  if (!report.ok()) {
    if (!std::filesystem::exists(session.folder + "/cycle-1-timed.tape")) {
      RemoveReference(session.folder);
    }
    return Fail(report.status());
  }

  const std::string text = ScoreText(*report);
  const std::string json =
      ScoreJson(*report).dump(2, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
  Status written = WriteWhole(session.folder + "/report.txt", text);
  if (written.ok()) written = WriteWhole(session.folder + "/report.json", json);
  Print(stdout, options.json ? json : text);
  if (!written.ok()) return Fail(written);
  if (!options.json) {
    std::printf("\nReport and result traces: %s/report.txt, report.json, *.tape\n",
                session.folder.c_str());
  }
  bool restored = true;
  for (const ScoredRun& run : report->runs) {
    const auto& left = run.outcome.settings_not_restored();
    TellNotRestored({left.begin(), left.end()});
    restored = restored && left.empty();
  }
  return report->valid() && restored ? kExitOk : kExitDegraded;
}

}  // namespace

Command ScoreCommand() {
  return {
      .name = "score",
      .summary = "Score a drive for the work in a trace, with a confidence interval",
      .examples =
          "blktape score monday.tape --target /dev/sdX --overwrite\n"
          "blktape score monday.tape --target scratch.img --create -o monday-score\n"
          "blktape score monday.tape --target /dev/sdX --overwrite --published",
      .declare = [](Flags* flags) -> std::function<int()> {
        const auto options = std::make_shared<ScoreOptions>();
        ScoreSessionOptions& session = options->session;
        flags->Positional("TRACE", &session.trace_path, "A .tape file");
        flags->Text("--target", &session.target_path,
                    "Block device or file; what the trace writes is written there", "PATH");
        flags->Count("--cycles", &session.cycles,
                     "Cycles of a timed run and a run at max speed that count (default 3)");
        flags->Switch("--published", &options->published,
                      "At least 5 cycles, and up to 15 until +-1.5 % is reached");
        flags->Switch("--overwrite", &session.overwrite, "The content of the target may be lost");
        flags->Switch("--yes", &options->yes, "Do not ask for confirmation");
        flags->Switch("--create", &options->create, "Make the target file if it does not exist");
        flags->Switch("--accept-loss", &session.loss_accepted,
                      "Score a trace that lost events; the report says so");
        flags->Text("--reference", &session.reference_folder,
                    "Folder of an earlier score of this trace: that drive is 1000", "DIR");
        flags->Choice("--engine", &session.engine, {"auto", "io_uring", "libaio"},
                      "What issues the I/Os (default auto: probes the target)");
        flags->Choice("--unsupported", &session.unsupported, {"fail", "skip", "emulate"},
                      "Operations the target lacks (default fail)");
        DeclareQueueSettings(flags, &options->settings);
        flags->Duration("--pause", &session.pause_ns, "Idle time before each run (default 2s)");
        flags->Text("-o,--output", &session.folder,
                    "Where report and result traces go (default TRACE-on-TARGET)", "DIR");
        flags->Switch("--json", &options->json, "JSON as docs/score.md defines it");
        return [options, flags] { return RunScore(*options, *flags); };
      },
  };
}

}  // namespace blktape
