#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "analysis/score_report.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/quantity.h"
#include "base/status.h"
#include "bench/campaign.h"
#include "bench/host_check.h"
#include "bench/piece.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/print.h"
#include "cli/progress_line.h"
#include "cli/queue_flags.h"
#include "cli/target_consent.h"
#include "replay/prepare/prepare.h"
#include "replay/replayer.h"
#include "replay/target/queue_setting.h"
#include "report/score_report_out.h"

namespace blktape {
namespace {

struct ScoreOptions {
  CampaignOptions campaign;
  std::vector<std::string> settings;
  int64_t idle_cap_ns = kDefaultIdleCapNs;
  int64_t budget_ns = 0;
  int64_t from_ns = 0;
  int64_t to_ns = 0;
  std::string prepare = "once";
  bool no_idle_cap = false;
  bool json = false;
  bool create = false;
  bool yes = false;
};

bool IsSimulated(const CampaignOptions& options) {
  return options.target_path.starts_with(kSimulatedTarget);
}

// "monday-on-sdx" for /data/monday.tape on /dev/sdx.
std::string DefaultFolder(const CampaignOptions& options) {
  const std::string target = IsSimulated(options)
                                 ? options.target_path.substr(sizeof kSimulatedTarget - 1)
                                 : std::filesystem::path(options.target_path).filename().string();
  return std::filesystem::path(options.piece.trace_path).stem().string() + "-on-" + target;
}

// The whole score, repeats included: how long it may still take.
class TimeLeft {
 public:
  void Plan(int64_t estimated_ns, uint64_t cycles) {
    cycle_ns_ = estimated_ns / static_cast<int64_t>(std::max<uint64_t>(cycles, 1));
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

Status TakeFlags(const Flags& given, ScoreOptions* options) {
  CampaignOptions& campaign = options->campaign;
  if (campaign.target_path.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "which drive is to be scored?\n"
                  "  try:  --target /dev/sdX, --target FILE for a scratch file, or\n"
                  "        --target sim:nvme-2026 for a simulated drive");
  }
  const uint64_t least = campaign.published ? kFirstStageCycles : uint64_t{1};
  if (campaign.published && !given.Given("--cycles")) campaign.cycles = kFirstStageCycles;
  if (campaign.cycles < least || campaign.cycles > kMostCycles) {
    return Status(StatusCode::kInvalidArgument, "--cycles must be " + std::to_string(least) +
                                                    " to " + std::to_string(kMostCycles));
  }
  if (given.Given("--idle-cap") && options->no_idle_cap) {
    return Status(StatusCode::kInvalidArgument, "--idle-cap and --no-idle-cap exclude one another");
  }
  campaign.idle_cap_ns = options->idle_cap_ns;
  if (options->no_idle_cap) campaign.idle_cap_ns.reset();
  if (given.Given("--budget")) campaign.budget_ns = options->budget_ns;
  if (given.Given("--seed") && !given.Given("--budget")) {
    return Status(StatusCode::kInvalidArgument, "--seed goes with --budget");
  }
  if (given.Given("--from")) campaign.piece.from_ns = options->from_ns;
  if (given.Given("--to")) campaign.piece.to_ns = options->to_ns;
  campaign.prepare_each_cycle = options->prepare == "each";
  if (given.Given("--prepare") && campaign.state == "as-is") {
    return Status(StatusCode::kInvalidArgument, "--prepare goes with --state used or fresh");
  }
  if (campaign.folder.empty()) campaign.folder = DefaultFolder(campaign);
  ASSIGN_OR_RETURN(campaign.queue_settings, ParseQueueSettings(options->settings));
  return OkStatus();
}

// Opens the target, which may refuse, and asks. What the target or the trace forbids is said before
// anything is left behind.
Status AgreeOnTarget(ScoreOptions* options, const std::atomic<bool>& stop) {
  CampaignOptions& campaign = options->campaign;
  if (IsSimulated(campaign)) return OkStatus();
  ReplayOptions preview;
  SetPiece(campaign.piece, campaign.target_path, &preview);
  preview.overwrite = campaign.overwrite;
  preview.scored = true;
  preview.unsupported = campaign.unsupported;
  preview.queue_settings = campaign.queue_settings;
  RETURN_IF_ERROR(CreateScratchTargets(preview, options->create, stop));
  ASSIGN_OR_RETURN(const ReplayPreview planned, PreviewReplay(preview, /*whole=*/false, stop));
  TellShared(planned, /*way_out=*/"");
  if (ChangesDevices(preview, planned) && !options->yes) {
    RETURN_IF_ERROR(ConfirmOverwrite(planned, stop));
  }
  campaign.identities = planned.identities;
  return OkStatus();
}

int RunScore(ScoreOptions options, const Flags& flags) {
  CampaignOptions& campaign = options.campaign;
  if (const Status taken = TakeFlags(flags, &options); !taken.ok()) return Fail(taken);
  TellRestoredQueues();
  const std::atomic<bool>& stop = StopOnSignals();
  if (const Status agreed = AgreeOnTarget(&options, stop); !agreed.ok()) return Fail(agreed);

  std::string host;
  if (!IsSimulated(campaign)) {
    const Result<HostCheck> check = CheckHost(2 * kNanosPerSecond, stop);
    if (!check.ok()) return Fail(check.status());
    host = check->Sentence();
    Print(stderr, host + "\n");
  }
  ProgressLine line;
  TimeLeft left;
  const CampaignEvents events{
      .on_resume =
          [&](uint64_t runs_done) {
            line.Clear();
            std::fprintf(
                stderr, "%s holds an unfinished score of this, which goes on: %s done\n",
                campaign.folder.c_str(),
                runs_done == 1 ? "1 run is" : (std::to_string(runs_done) + " runs are").c_str());
          },
      .on_plan =
          [&](uint64_t cycles, int64_t estimated_ns) {
            line.Clear();
            left.Plan(estimated_ns, cycles);
            if (IsSimulated(campaign)) return;  // in no time
            std::fprintf(stderr, "%s cycles on %s: about %s left\n", std::to_string(cycles).c_str(),
                         campaign.target_path.c_str(), FormatDurationNs(estimated_ns).c_str());
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
      .on_prepare_progress =
          [&](const std::string& label, const PrepareProgress& now) {
            line.Show(label + ", " + now.phase + ": " +
                      std::to_string(static_cast<int>(now.fraction * 100)) + " %");
          },
  };
  const CampaignTools tools{
      .replay = RunReplay, .prepare = RunPrepare, .clock = Clock::Monotonic()};
  Result<ScoreReport> report = RunCampaign(campaign, tools, stop, events);
  line.Clear();
  if (!report.ok()) return Fail(report.status());
  report->host = host;

  const std::string text = ScoreText(*report);
  const std::string json =
      ScoreJson(*report).dump(2, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
  Status written = ReplaceFile(campaign.folder + "/report.txt", text);
  if (written.ok()) written = ReplaceFile(campaign.folder + "/report.json", json);
  Print(stdout, options.json ? json : text);
  if (!written.ok()) return Fail(written);
  if (!options.json) {
    std::printf("\nReport and result traces: %s/report.txt, report.json, *.tape\n",
                campaign.folder.c_str());
  }
  if (stop.load()) {
    std::fprintf(stderr, "stopped; the same command goes on where it was, no run is lost\n");
  }
  bool restored = true;
  for (const ScoredRun& run : report->runs) {
    const auto& left_set = run.outcome.settings_not_restored();
    TellNotRestored({left_set.begin(), left_set.end()});
    restored = restored && left_set.empty();
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
          "blktape score monday.tape --target /dev/sdX --overwrite --published\n"
          "blktape score monday.tape --target /dev/sdX --overwrite --state used\n"
          "blktape score monday.tape --target /dev/sdX --overwrite --budget 5m\n"
          "blktape score monday.tape --target sim:nvme-2026",
      .declare = [](Flags* flags) -> std::function<int()> {
        const auto options = std::make_shared<ScoreOptions>();
        CampaignOptions& campaign = options->campaign;
        flags->Positional("TRACE", &campaign.piece.trace_path, "A .tape file");
        flags->Text("--target", &campaign.target_path,
                    "Block device or file, which is written to; or sim:reference, sim:nvme-2026, "
                    "sim:sata-2011, sim:emmc-2018",
                    "PATH");
        flags->Text("--device", &campaign.piece.device, "Only this device of the trace", "NAME");
        flags->Duration("--from", &options->from_ns, "Begin so long after the trace's first I/O");
        flags->Duration("--to", &options->to_ns, "End so long after the trace's first I/O");
        flags->Duration("--idle-cap", &options->idle_cap_ns,
                        "Cut think and idle time above this (default 1s)");
        flags->Switch("--no-idle-cap", &options->no_idle_cap, "Keep all think and idle time");
        flags->Duration("--budget", &options->budget_ns,
                        "How long a cycle may take: a random sample of windows stands for the "
                        "whole");
        flags->Count("--seed", &campaign.seed, "Which windows --budget draws (default 1)");
        flags->Switch("--open", &campaign.open_loop,
                      "Issue at the recorded times, whatever the drive does: another rule");
        flags->Choice(
            "--state", &campaign.state, {"as-is", "used", "fresh"},
            "State of the drive: as found (default), or prepared, which writes all of it");
        flags->Choice("--prepare", &options->prepare, {"once", "each"},
                      "Before the first cycle (default) or before each");
        flags->Count("--cycles", &campaign.cycles,
                     "Cycles of a closed-loop run and a run at max speed that count (default 3)");
        flags->Switch("--published", &campaign.published,
                      "5 cycles tell the spread, and by it how many make +-1.5 %");
        flags->Switch("--overwrite", &campaign.overwrite, "The content of the target may be lost");
        flags->Switch("--yes", &options->yes, "Do not ask for confirmation");
        flags->Switch("--create", &options->create, "Make the target file if it does not exist");
        flags->Switch("--accept-loss", &campaign.loss_accepted,
                      "Score a trace that lost events; the report says so");
        flags->Text("--reference", &campaign.reference_folder,
                    "Folder of an earlier score of this trace: that drive is 1000", "DIR");
        flags->Choice("--engine", &campaign.engine, {"auto", "io_uring", "libaio"},
                      "What issues the I/Os (default auto: probes the target)");
        flags->Choice("--unsupported", &campaign.unsupported, {"fail", "skip", "emulate"},
                      "Operations the target lacks (default fail)");
        DeclareQueueSettings(flags, &options->settings);
        flags->Duration("--pause", &campaign.pause_ns, "Idle time before each run (default 2s)");
        flags->Text("-o,--output", &campaign.folder,
                    "Where report and result traces go (default TRACE-on-TARGET); an unfinished "
                    "score there goes on",
                    "DIR");
        flags->Switch("--json", &options->json, "JSON as docs/score.md defines it");
        return [options, flags] { return RunScore(*options, *flags); };
      },
  };
}

}  // namespace blktape
