#include "cli/score_flags.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/quantity.h"
#include "base/text_layout.h"
#include "base/units.h"
#include "bench/campaign_folder.h"
#include "bench/host_check.h"
#include "bench/piece.h"
#include "cli/print.h"
#include "cli/queue_flags.h"
#include "cli/target_consent.h"
#include "cli/terminal.h"
#include "replay/engine/drive_model.h"
#include "replay/prepare/prepare.h"
#include "replay/replayer.h"
#include "report/score_report_out.h"

namespace blktape {
namespace {

std::string ProgressText(const std::string& label, const ReplayProgress& now) {
  return label + ": " + std::to_string(static_cast<int>(now.fraction * 100)) + " %, " +
         FormatCounted(now.completed, "I/O") +
         (now.errors > 0 ? ", " + FormatCounted(now.errors, "error") : "");
}

// A score that takes more than an hour could have taken cycles of 20 minutes. Empty: nothing to
// say.
std::string ShorterWay(const CampaignOptions& campaign, uint64_t cycles, int64_t left_ns) {
  constexpr int64_t kMinuteNs = 60 * kNanosPerSecond;
  constexpr int64_t kBudgetMinutes = 20;
  const int64_t sampled_ns = static_cast<int64_t>(cycles) * kBudgetMinutes * kMinuteNs;
  if (campaign.budget_ns || left_ns <= std::max(60 * kMinuteNs, sampled_ns)) return "";
  return "  --budget " + std::to_string(kBudgetMinutes) +
         "m would score a random sample of it in about " + FormatDurationNs(sampled_ns);
}

}  // namespace

void DeclareScoreFlags(Flags* flags, ScoreFlags* options) {
  CampaignOptions& campaign = options->campaign;
  flags->Text("--device", &campaign.piece.device, "Only this device of the trace", "NAME");
  flags->Duration("--from", &options->from_ns, "Begin this long after the trace's first I/O");
  flags->Duration("--to", &options->to_ns, "End this long after the trace's first I/O");
  flags->Duration("--idle-cap", &options->idle_cap_ns,
                  "Limit think and idle times to this (default 2s)");
  flags->Switch("--no-idle-cap", &options->no_idle_cap, "Keep all think and idle time");
  flags->Duration("--budget", &options->budget_ns,
                  "How long a cycle may take: a random sample of windows stands for the "
                  "whole");
  flags->Count("--seed", &campaign.seed, "Which windows --budget draws (default 1)");
  flags->Switch("--open", &campaign.open_loop,
                "Issue at the recorded times, whatever the drive does: a different rule");
  flags->Choice(
      "--state", &campaign.state, {"as-is", "used", "fresh"},
      "State of the drive: as found (default of a drive), or prepared, which writes the whole "
      "drive; the default of a file is fresh: what is read first is written");
  flags->Choice("--prepare", &options->prepare, {"once", "each"},
                "Before the first cycle (default) or before each");
  flags->Count("--cycles", &campaign.cycles,
               "Cycles of a closed-loop run and a run at max speed that count (default 3)");
  flags->Switch("--published", &campaign.published,
                "5 cycles measure the spread, which gives the number of cycles for +-1.5 %");
  flags->Switch("--overwrite", &campaign.overwrite, "Accept that the target's content is lost");
  flags->Switch("--yes", &options->yes, "Do not ask for confirmation");
  flags->Switch("--create", &options->create, "Make the target file if it does not exist");
  flags->Switch("--accept-loss", &campaign.loss_accepted,
                "Score a trace that lost events; the report says so");
  flags->Choice("--engine", &campaign.engine, {"auto", "io_uring", "libaio"},
                "The engine that issues the I/Os (default auto: probes the target)");
  flags->Choice("--unsupported", &campaign.unsupported, {"fail", "skip", "emulate"},
                "Operations that the target lacks (default fail)");
  DeclareQueueSettings(flags, &options->settings);
  flags->Duration("--pause", &campaign.pause_ns, "Idle time before each run (default 2s)");
}

Status TakeScoreFlags(const Flags& given, ScoreFlags* options) {
  CampaignOptions& campaign = options->campaign;
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
  if (given.Given("--prepare") && (campaign.state.empty() || campaign.state == "as-is")) {
    return Status(StatusCode::kInvalidArgument, "--prepare goes with --state used or fresh");
  }
  ASSIGN_OR_RETURN(campaign.queue_settings, ParseQueueSettings(options->settings));
  return OkStatus();
}

std::string SimulatedTargets() {
  std::string all;
  for (const std::string& name : DriveModelNames()) {
    all += (all.empty() ? "" : ", ") + (kSimulatedTarget + name);
  }
  return all;
}

bool IsSimulatedTarget(const std::string& target_path) {
  return target_path.starts_with(kSimulatedTarget);
}

namespace {

// A file that is to be made takes the largest of the traces.
Status CreateScratch(const ScoreFlags& options, const std::vector<TracePiece>& traces,
                     const std::string& target, const std::atomic<bool>& stop, MadeFiles* made) {
  ReplayOptions largest;
  uint64_t largest_bytes = 0;
  std::error_code error;
  const bool choose =
      traces.size() > 1 && options.create && !std::filesystem::exists(target, error);
  for (const TracePiece& trace : traces) {
    ReplayOptions one;
    SetPiece(trace, target, &one);
    if (largest.mappings.empty()) largest = one;
    if (!choose) break;
    ASSIGN_OR_RETURN(const uint64_t bytes, FootprintEndBytes(one, stop));
    if (bytes <= largest_bytes) continue;
    largest_bytes = bytes;
    largest = one;
  }
  // Where no state is named a file is made fresh.
  const bool prepared = options.campaign.state != "as-is";
  return CreateScratchTargets(largest, options.create, prepared, stop, made);
}

// A target that may not be overwritten is looked at once more if a campaign that goes on wrote what
// lies there.
Result<ReplayPreview> PreviewUnlessOurs(const ReplayOptions& preview,
                                        const std::set<std::string>& touched,
                                        const std::atomic<bool>& stop) {
  Result<ReplayPreview> planned = PreviewReplay(preview, /*whole=*/false, stop);
  if (planned.ok() || preview.overwrite || touched.empty()) return planned;
  ReplayOptions ours = preview;
  ours.overwrite = true;
  Result<ReplayPreview> again = PreviewReplay(ours, /*whole=*/false, stop);
  if (!again.ok() || ChangesDevices(ours, *again)) return planned;
  for (const auto& [path, identity] : again->identities) {
    if (!touched.contains(identity)) return planned;
  }
  return again;
}

}  // namespace

Result<std::map<std::string, std::string>> AgreeOnTargets(const ScoreFlags& options,
                                                          const std::vector<TracePiece>& traces,
                                                          const std::vector<std::string>& targets,
                                                          const std::vector<std::string>& folders,
                                                          const std::atomic<bool>& stop,
                                                          MadeFiles* made) {
  std::set<std::string> touched;
  for (const std::string& folder : folders) touched.insert(TargetTouchedBy(folder));
  touched.erase("");
  const CampaignOptions& campaign = options.campaign;
  std::map<std::string, std::string> identities;
  ReplayPreview to_confirm;
  for (const std::string& target : targets) {
    if (IsSimulatedTarget(target)) {
      RETURN_IF_ERROR(DriveModelNamed(target.substr(sizeof kSimulatedTarget - 1)).status());
      continue;
    }
    RETURN_IF_ERROR(CreateScratch(options, traces, target, stop, made));
    for (const TracePiece& trace : traces) {
      ReplayOptions preview;
      SetPiece(trace, target, &preview);
      preview.overwrite = campaign.overwrite;
      preview.scored = true;
      preview.unsupported = campaign.unsupported;
      preview.queue_settings = campaign.queue_settings;
      ASSIGN_OR_RETURN(const ReplayPreview planned, PreviewUnlessOurs(preview, touched, stop));
      TellShared(planned, /*way_out=*/"");
      if (&trace == &traces.front()) TellLostFlushes(planned);
      for (const auto& [path, identity] : planned.identities) {
        for (const auto& [other, same] : identities) {
          if (same == identity && path != other) {
            return Status(StatusCode::kInvalidArgument,
                          path + " and " + other + " are two names of one drive");
          }
        }
      }
      identities.insert(planned.identities.begin(), planned.identities.end());
      if (&trace == &traces.front() && ChangesDevices(preview, planned)) {
        to_confirm.targets.insert(to_confirm.targets.end(), planned.targets.begin(),
                                  planned.targets.end());
        to_confirm.settings = planned.settings;
      }
    }
  }
  if (!to_confirm.targets.empty() && !options.yes) {
    RETURN_IF_ERROR(ConfirmOverwrite(to_confirm, stop));
  }
  return identities;
}

CampaignTools CampaignProgress::Tools() {
  const auto replay = [this](const ReplayOptions& options, const std::atomic<bool>& stop,
                             const std::function<void(const ReplayProgress&)>& progress)
      -> Result<proto::ReplayOutcome> {
    // The reference is computed, in cycle 0.
    if (options.cycle > 0 && options.engine != "simulated") {
      std::call_once(looked_, [&] {
        const Result<HostCheck> check = CheckHost(2 * kNanosPerSecond, stop);
        look_ = check.status();
        if (!check.ok() || stop.load()) return;  // of a look cut short nothing can be said
        host_ = check->Sentence();
        Say(host_);
      });
      RETURN_IF_ERROR(look_);
    }
    return RunReplay(options, stop, progress);
  };
  return {.replay = replay, .prepare = RunPrepare, .clock = Clock::Monotonic()};
}

std::string CampaignProgress::Left() {
  const std::lock_guard lock(mutex_);
  return left_.Text(clock_->NowNs());
}

void CampaignProgress::Say(const std::string& text) {
  const std::lock_guard lock(mutex_);
  line_.Clear();
  // A log keeps its lines whole.
  Print(stderr, isatty(STDERR_FILENO) == 0
                    ? text + "\n"
                    : Wrapped("", "  ", text, LookOf(STDERR_FILENO).columns));
}

void CampaignProgress::Show(const std::string& text) {
  const std::lock_guard lock(mutex_);
  line_.Show(text);
}

CampaignEvents CampaignProgress::EventsOf(const CampaignOptions& campaign,
                                          const std::string& prefix) {
  const bool simulated = IsSimulatedTarget(campaign.target_path);
  const size_t number = [this] {
    const std::lock_guard lock(mutex_);
    return campaigns_++;
  }();
  const auto left = [this, simulated, number](const CampaignEstimate& estimate) {
    if (simulated) return;  // in no time
    const std::lock_guard lock(mutex_);
    left_.Tell(number, estimate, clock_->NowNs());
  };
  return {
      .on_resume =
          [this, folder = campaign.folder](uint64_t runs_done) {
            Say(folder + " holds a score of this, which goes on: " +
                FormatCounted(runs_done, "run") + " done");
          },
      .on_plan =
          [this, simulated, left, campaign](uint64_t cycles, const CampaignEstimate& estimate) {
            if (simulated) return;
            Say(FormatCounted(cycles, "cycle") + " on " + campaign.target_path + ": " +
                EstimateText(estimate, ""));
            const std::string shorter = ShorterWay(campaign, cycles, estimate.ns);
            if (!shorter.empty()) Say(shorter);
            left(estimate);
          },
      .on_left = left,
      .on_run = [this, prefix](const std::string& label) { Show(prefix + label); },
      .on_repeat =
          [this, prefix](const RepeatedCycle& cycle) {
            Say(prefix + "measured again: " + cycle.reasons.front().Sentence());
          },
      .on_progress =
          [this, prefix](const std::string& label, const ReplayProgress& now) {
            Show(prefix + ProgressText(label, now) + Left());
          },
      .on_prepare_progress =
          [this, prefix](const std::string& label, const PrepareProgress& now) {
            Show(prefix + label + ", " + now.phase + ": " +
                 std::to_string(static_cast<int>(now.fraction * 100)) + " %" +
                 (now.least_left_ns
                      ? ", at least " + FormatDurationNs(*now.least_left_ns) + " of it left"
                      : ""));
          },
  };
}

std::string ScoreJsonText(const ScoreReport& report) { return JsonText(ScoreJson(report)) + "\n"; }

void TakeHostOfBefore(const std::string& folder, ScoreReport* report) {
  if (!report->host.empty()) return;
  const Result<std::string> before = ReadFile(folder + "/report.json");
  if (!before.ok()) return;
  const auto json = ParseJson(*before);
  if (!json.is_object()) return;
  const auto host = json.find("host");
  if (host != json.end() && host->is_string()) report->host = host->get<std::string>();
}

Status WriteScoreReport(const ScoreReport& report, const std::string& folder) {
  RETURN_IF_ERROR(ReplaceFile(folder + "/report.txt", ScoreText(report)));
  return ReplaceFile(folder + "/report.json", ScoreJsonText(report));
}

bool TellSettingsOf(const ScoreReport& report) {
  bool restored = true;
  for (const ScoredRun& run : report.runs) {
    const auto& left_set = run.outcome.settings_not_restored();
    TellNotRestored({left_set.begin(), left_set.end()});
    restored = restored && left_set.empty();
  }
  return restored;
}

}  // namespace blktape
