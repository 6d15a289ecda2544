#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/drive_comparison.h"
#include "analysis/measured_score.h"
#include "analysis/score_report.h"
#include "base/file.h"
#include "base/status.h"
#include "bench/bench.h"
#include "bench/campaign.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/print.h"
#include "cli/queue_flags.h"
#include "cli/score_flags.h"
#include "cli/terminal.h"
#include "report/comparison_report.h"
#include "report/page.h"

namespace blktape {
namespace {

struct BenchFlags {
  ScoreFlags score;
  std::vector<std::string> targets;
  std::string folder;
  uint64_t order_seed = 1;
  bool quick = false;
};

// The drives side by side, as `compare` shows them, and the page of it.
Status TellResults(const std::vector<BenchResult>& results, const std::string& folder) {
  std::vector<ComparedDrive> drives;
  for (const BenchResult& result : results) {
    if (!result.status.ok()) continue;
    ASSIGN_OR_RETURN(MeasuredScore score, ParseMeasuredScore(ScoreJsonText(result.report)));
    drives.push_back({.label = result.target,
                      .source = result.folder + "/report.json",
                      .score = std::move(score)});
  }
  if (drives.size() < 2) {
    for (const ComparedDrive& drive : drives) Print(stdout, drive.source + "\n");
    return OkStatus();
  }
  const DriveComparison comparison = CompareDrives(std::move(drives));
  const TextLook look = LookOf(STDOUT_FILENO);
  const std::string text = ComparisonText(comparison, look);
  if (look.colour) {
    std::fwrite(text.data(), 1, text.size(), stdout);
  } else {
    Print(stdout, text);
  }
  const std::string page = folder + "/bench.html";
  RETURN_IF_ERROR(ReplaceFile(page, PageHtml(ComparisonPage(comparison))));
  Print(stdout, "\nPage: " + page + "\n");
  return OkStatus();
}

int RunBenchVerb(BenchFlags* flags, const Flags& given) {
  CampaignOptions& campaign = flags->score.campaign;
  if (flags->targets.empty()) {
    return UsageError(
        "which drives are to be compared?\n"
        "  try:  --target /dev/sdX --target /dev/sdY, or --target sim:nvme-2026");
  }
  if (flags->quick) {
    if (given.Given("--cycles") || campaign.published) {
      return UsageError("--quick is one cycle, and goes with neither --cycles nor --published");
    }
    campaign.cycles = 1;
  }
  if (const Status taken = TakeScoreFlags(given, &flags->score); !taken.ok()) return Fail(taken);
  TellRestoredQueues();
  const std::atomic<bool>& stop = StopOnSignals();
  // All of them before the first byte changes.
  const auto identities = AgreeOnTargets(flags->score, flags->targets, stop);
  if (!identities.ok()) return Fail(identities.status());
  BenchOptions bench{.campaign = campaign,
                     .targets = flags->targets,
                     .folder = flags->folder,
                     .identities = *identities,
                     .order_seed = flags->order_seed};
  if (bench.folder.empty()) {
    bench.folder = "bench-" + std::filesystem::path(campaign.piece.trace_path).stem().string();
  }
  CampaignProgress progress;
  const CampaignTools tools = progress.Tools();
  Result<std::vector<BenchResult>> results =
      RunBench(bench, tools, stop, [&](const std::string& target) {
        CampaignOptions one = campaign;
        one.target_path = target;
        one.folder = BenchFolderOf(bench, target);
        return progress.EventsOf(one, target + ", ");
      });
  progress.Clear();
  if (!results.ok()) return Fail(results.status());

  bool whole = true;
  Status failed;
  for (BenchResult& result : *results) {
    if (!result.status.ok()) {
      failed = result.status;
      Print(stderr, "error: " + result.target + ": " + result.status.message() + "\n");
      continue;
    }
    result.report.host = progress.host();
    if (const Status written = WriteScoreReport(result.report, result.folder); !written.ok()) {
      return Fail(written);
    }
    whole = TellSettingsOf(result.report) && result.report.valid() && whole;
  }
  if (const Status told = TellResults(*results, bench.folder); !told.ok()) return Fail(told);
  if (flags->quick) {
    std::printf("QUICK: one cycle tells no interval; these drives are not ranked.\n");
  }
  if (stop.load()) {
    std::fprintf(stderr, "stopped; the same command goes on where it was, no run is lost\n");
  }
  if (!failed.ok()) return kExitFailed;
  return whole ? kExitOk : kExitDegraded;
}

std::function<int()> DeclareBench(Flags* flags) {
  const auto options = std::make_shared<BenchFlags>();
  flags->Positional("TRACE", &options->score.campaign.piece.trace_path, "A .tape file");
  flags->TextList("--target", &options->targets,
                  "Block device or file, which is written to, or a simulated drive (sim:reference, "
                  "sim:nvme-2026, sim:sata-2011, sim:emmc-2018); once for each",
                  "PATH");
  flags->Switch("--quick", &options->quick, "One cycle: a first look, not ranked");
  DeclareScoreFlags(flags, &options->score);
  flags->Count("--order", &options->order_seed,
               "Seed of the order in which the drives take turns (default 1)");
  flags->Text("-o,--output", &options->folder,
              "Where reports and result traces go (default bench-TRACE); an unfinished bench there "
              "goes on",
              "DIR");
  return [options, flags] { return RunBenchVerb(options.get(), *flags); };
}

}  // namespace

Command BenchCommand() {
  return {
      .name = "bench",
      .summary = "Score several drives for the work in a trace, in turns, and compare them",
      .examples =
          "blktape bench monday.tape --target /dev/sdX --target /dev/sdY --overwrite\n"
          "blktape bench day.tape --target /dev/sdX --target sim:nvme-2026 --overwrite\n"
          "blktape bench monday.tape --target a.img --target b.img --create --quick",
      .declare = DeclareBench,
  };
}

}  // namespace blktape
