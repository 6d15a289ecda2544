#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/quantity.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/progress_line.h"
#include "cli/queue_flags.h"
#include "cli/target_consent.h"
#include "replay/prepare/prepare.h"
#include "replay/prepare/steady_state.h"
#include "replay/replayer.h"
#include "replay/target/queue_setting.h"
#include "replay/target/target.h"

namespace blktape {
namespace {

struct PrepareFlags {
  PrepareOptions prepare;
  std::string state;
  std::string device;  // of the trace
  std::vector<std::string> settings;
  uint64_t span_bytes = 0;
  uint64_t rounds = 25;
  bool yes = false;
  bool json = false;
};

// Opens the target, which may refuse it, and asks. What is then prepared is this target.
Status CheckTarget(PrepareFlags* flags, const std::atomic<bool>& stop) {
  const std::string& path = flags->prepare.target_path;
  ASSIGN_OR_RETURN(const std::unique_ptr<Target> target,
                   Target::Open(path, {.overwrite = flags->prepare.replay.overwrite}));
  flags->prepare.replay.identities = {{path, target->identity()}};
  if (flags->yes || !target->is_block_device()) return OkStatus();
  ReplayPreview preview;
  preview.targets.push_back(target->description());
  return ConfirmOverwrite(preview, stop);
}

void PrintText(const PrepareFlags& flags, const PrepareReport& report) {
  std::printf("%s is %s\n", flags.prepare.target_path.c_str(), flags.state.c_str());
  if (report.resumed) std::printf("  continued an earlier preparation that was stopped\n");
  for (const std::string& setting : report.settings_changed) {
    std::printf("  setting      %s\n", setting.c_str());
  }
  if (report.filled_bytes > 0) {
    std::printf("  filled       %s\n", FormatBytes(report.filled_bytes).c_str());
  }
  if (report.discarded_bytes > 0) {
    std::printf("  discarded    %s\n", FormatBytes(report.discarded_bytes).c_str());
  }
  if (report.prefilled_bytes > 0) {
    std::printf("  written      %s, which the trace reads before it writes\n",
                FormatBytes(report.prefilled_bytes).c_str());
  }
  for (size_t i = 0; i < report.rounds_iops.size(); ++i) {
    std::printf("  round %-6zu %10.0f IOPS\n", i + 1, report.rounds_iops[i]);
  }
  if (flags.prepare.state != PrepareOptions::State::kUsed) {
    if (flags.prepare.replay.trace_path.empty()) {
      std::printf(
          "  without --trace nothing was written: reads of unwritten blocks make a drive\n  look "
          "too fast\n");
    }
    return;
  }
  if (report.rounds_iops.size() < kSteadyWindow) {
    std::printf("  NOT STEADY: it takes %zu rounds to tell\n", kSteadyWindow);
    return;
  }
  std::printf(
      "  %s over the last five rounds:\n"
      "    max - min is %.1f %% of the mean (20 allowed),\n"
      "    the fitted line changes by %.1f %% of it (10 allowed)\n",
      report.steady ? "steady" : "NOT STEADY", report.window.spread * 100,
      report.window.slope * 100);
}

void PrintJson(const PrepareFlags& flags, const PrepareReport& report) {
  Json json = {{"target", flags.prepare.target_path},
               {"state", flags.state},
               {"resumed", report.resumed},
               {"filled_bytes", report.filled_bytes},
               {"discarded_bytes", report.discarded_bytes},
               {"prefilled_bytes", report.prefilled_bytes},
               {"rounds_iops", report.rounds_iops},
               {"settings_changed", report.settings_changed},
               {"settings_not_restored", report.settings_not_restored}};
  if (flags.prepare.state == PrepareOptions::State::kUsed) {
    const bool judged = report.rounds_iops.size() >= kSteadyWindow;
    json["steady"] = report.steady;
    json["spread"] = judged ? Json(report.window.spread) : Json(nullptr);
    json["slope"] = judged ? Json(report.window.slope) : Json(nullptr);
  }
  std::puts(JsonText(json).c_str());
}

// Flags of the other state would be without effect.
Status CheckState(const std::string& state, const Flags& given) {
  const bool used = state == "used";
  for (const char* flag : {"--trace", "--device", "--remap", "--round", "--rounds"}) {
    const bool of_used = std::string_view(flag).starts_with("--round");
    if (!given.Given(flag) || of_used == used) continue;
    return Status(StatusCode::kInvalidArgument,
                  std::string(flag) + " goes with --state " + (of_used ? "used" : "fresh"));
  }
  return OkStatus();
}

int RunPrepareVerb(PrepareFlags* flags, const Flags& given) {
  PrepareOptions& prepare = flags->prepare;
  if (flags->state.empty()) {
    return UsageError("into which state?\n  try:  --state used, or --state fresh");
  }
  if (prepare.target_path.empty()) return UsageError("no target is given\n  try:  --target PATH");
  if (Status fits = CheckState(flags->state, given); !fits.ok()) return Fail(fits);
  prepare.state =
      flags->state == "used" ? PrepareOptions::State::kUsed : PrepareOptions::State::kFresh;
  prepare.replay.mappings = {{flags->device, prepare.target_path}};
  prepare.max_rounds = static_cast<uint32_t>(std::min<uint64_t>(flags->rounds, 10'000));
  if (given.Given("--span")) prepare.span_bytes = flags->span_bytes;
  Result<std::vector<QueueSetting>> settings = ParseQueueSettings(flags->settings);
  if (!settings.ok()) return Fail(settings.status());
  prepare.replay.queue_settings = *std::move(settings);
  TellRestoredQueues();
  const std::atomic<bool>& stop = StopOnSignals();
  if (Status checked = CheckTarget(flags, stop); !checked.ok()) return Fail(checked);

  const Result<PrepareReport> report = [&] {
    ProgressLine line;
    return RunPrepare(prepare, stop, [&line](const PrepareProgress& now) {
      line.Show(now.phase + "  " + std::to_string(static_cast<int>(now.fraction * 100)) + " %  " +
                FormatBytes(now.bytes_per_second) + "/s" +
                (now.least_left_ns ? "  at least " + FormatDurationNs(*now.least_left_ns) + " left"
                                   : ""));
    });
  }();
  if (!report.ok()) {
    if (report.status().code() == StatusCode::kCancelled && !prepare.progress_path.empty()) {
      std::fprintf(stderr, "stopped; the same command continues from here\n");
    }
    return Fail(report.status());
  }
  flags->json ? PrintJson(*flags, *report) : PrintText(*flags, *report);
  TellNotRestored(report->settings_not_restored);
  const bool used = prepare.state == PrepareOptions::State::kUsed;
  const bool whole = (!used || report->steady) && report->settings_not_restored.empty();
  return whole ? kExitOk : kExitDegraded;
}

std::function<int()> DeclarePrepare(Flags* flags) {
  const auto options = std::make_shared<PrepareFlags>();
  PrepareOptions& prepare = options->prepare;
  flags->Choice("--state", &options->state, {"used", "fresh"},
                "used: filled twice, then random 4 KiB writes until steady; fresh: discarded, then "
                "every block written that the trace reads before it writes");
  flags->Text("--target", &prepare.target_path, "Block device or file to prepare", "PATH");
  flags->Text("--trace", &prepare.replay.trace_path, "fresh: the trace that will be replayed",
              "FILE");
  flags->Text("--device", &options->device,
              "fresh: the trace's device that will be replayed on this target", "NAME");
  flags->Choice("--remap", &prepare.replay.remap, {"refuse", "offset", "scale", "wrap"},
                "fresh: the same as in the replay (default refuse)");
  flags->Size("--span", &options->span_bytes,
              "Only this much from the target's start (default: all)");
  flags->Duration("--round", &prepare.round_ns, "used: length of a round (default 60s)");
  flags->Count("--rounds", &options->rounds, "used: maximum number of rounds (default 25)");
  flags->Duration("--idle", &prepare.idle_ns, "Idle time at the end (default 60s)");
  flags->Text("--resume", &prepare.progress_path,
              "File for the progress; a stopped preparation continues from it", "FILE");
  flags->Choice("--engine", &prepare.replay.engine, {"auto", "io_uring", "libaio"},
                "The engine that issues the I/Os (default auto)");
  DeclareQueueSettings(flags, &options->settings);
  flags->Switch("--overwrite", &prepare.replay.overwrite,
                "Accept that the target's content is lost");
  flags->Switch("--yes", &options->yes, "Do not ask for confirmation");
  flags->Switch("--json", &options->json, "JSON as defined in docs/metrics.md (bytes, IOPS)");
  return [options, flags] { return RunPrepareVerb(options.get(), *flags); };
}

}  // namespace

Command PrepareCommand() {
  return {
      .name = "prepare",
      .summary = "Bring a drive into a known state before a replay: used or fresh",
      .examples =
          "blktape prepare --state used --target /dev/sdX --overwrite --resume sdx.json\n"
          "blktape prepare --state fresh --target /dev/sdX --trace day.tape --overwrite",
      .declare = DeclarePrepare,
  };
}

}  // namespace blktape
