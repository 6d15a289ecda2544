#include <atomic>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "analysis/score_report.h"
#include "base/status.h"
#include "bench/campaign.h"
#include "bench/campaign_folder.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/kept_results.h"
#include "cli/print.h"
#include "cli/queue_flags.h"
#include "cli/score_flags.h"
#include "cli/target_consent.h"
#include "report/score_report_out.h"

namespace blktape {
namespace {

struct ScoreOptions {
  ScoreFlags score;
  KeepFlags keep;
  bool json = false;
};

// "monday-on-sdx" for /data/monday.tape on /dev/sdx.
std::string DefaultFolder(const CampaignOptions& options) {
  const std::string target = IsSimulatedTarget(options.target_path)
                                 ? options.target_path.substr(sizeof kSimulatedTarget - 1)
                                 : std::filesystem::path(options.target_path).filename().string();
  return std::filesystem::path(options.piece.trace_path).stem().string() + "-on-" + target;
}

int RunScore(ScoreOptions options, const Flags& flags) {
  CampaignOptions& campaign = options.score.campaign;
  if (campaign.target_path.empty()) {
    return UsageError(
        "which drive is to be scored?\n"
        "  try:  --target /dev/sdX, --target FILE for a scratch file, or\n"
        "        --target sim:nvme-2026 for a simulated drive");
  }
  if (const Status taken = TakeScoreFlags(flags, &options.score); !taken.ok()) return Fail(taken);
  if (const Status checked = CheckKeepFlags(options.keep); !checked.ok()) return Fail(checked);
  if (campaign.folder.empty()) campaign.folder = DefaultFolder(campaign);
  TellRestoredQueues();
  const std::atomic<bool>& stop = StopOnSignals();
  // What is refused is refused before a file is made or anything is asked.
  const auto trace = CheckCampaign(campaign, stop);
  if (!trace.ok()) return Fail(trace.status());
  campaign.trace = *trace;
  MadeFiles made;
  const auto identities = AgreeOnTargets(options.score, {campaign.piece}, {campaign.target_path},
                                         {campaign.folder}, stop, &made);
  if (!identities.ok()) return Fail(identities.status());
  campaign.identities = *identities;
  CampaignProgress progress;
  const CampaignEvents events = progress.EventsOf(campaign, "");
  const CampaignTools tools = progress.Tools();
  Result<ScoreReport> report = RunCampaign(campaign, tools, stop, events);
  progress.Clear();
  if (!TargetTouchedBy(campaign.folder).empty()) made.Keep();
  if (!report.ok()) return Fail(report.status());
  report->host = progress.host();

  const Status written = WriteScoreReport(*report, campaign.folder);
  Print(stdout, options.json ? ScoreJsonText(*report) : ScoreText(*report));
  if (!written.ok()) return Fail(written);
  if (!options.json) {
    std::printf("\nReport and result traces: %s/report.txt, report.json, *.tape\n",
                campaign.folder.c_str());
  }
  if (stop.load()) {
    std::fprintf(stderr, "stopped; the same command goes on where it was, no run is lost\n");
  } else {
    const std::string name =
        std::filesystem::path(campaign.folder).lexically_normal().filename().string();
    const Status kept = KeepResults(
        options.keep, {{name, ScoreJsonText(*report), {{campaign.folder, /*prefix=*/""}}}});
    if (!kept.ok()) return Fail(kept);
  }
  const bool restored = TellSettingsOf(*report);
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
        CampaignOptions& campaign = options->score.campaign;
        flags->Positional("TRACE", &campaign.piece.trace_path, "A .tape file");
        flags->Text("--target", &campaign.target_path,
                    "Block device or file, which is written to; or " + SimulatedTargets(), "PATH");
        DeclareScoreFlags(flags, &options->score);
        flags->Text("--reference", &campaign.reference_folder,
                    "Folder of an earlier score of this trace: that drive is 1000", "DIR");
        flags->Text("-o,--output", &campaign.folder,
                    "Folder for the report and result traces (default TRACE-on-TARGET); an "
                    "unfinished score there is continued",
                    "DIR");
        DeclareKeepFlags(flags, &options->keep, /*has_traces=*/true);
        flags->Switch("--json", &options->json, "JSON as defined in docs/score.md");
        return [options, flags] { return RunScore(*options, *flags); };
      },
  };
}

}  // namespace blktape
