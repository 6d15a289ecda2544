#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/drive_comparison.h"
#include "analysis/measured_score.h"
#include "analysis/score_report.h"
#include "analysis/suite_score.h"
#include "base/file.h"
#include "base/json.h"
#include "base/status.h"
#include "bench/bench.h"
#include "bench/campaign.h"
#include "bench/campaign_folder.h"
#include "bench/suite.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/kept_results.h"
#include "cli/print.h"
#include "cli/queue_flags.h"
#include "cli/score_flags.h"
#include "cli/target_consent.h"
#include "cli/terminal.h"
#include "report/page.h"
#include "report/results_comparison.h"

namespace blktape {
namespace {

struct BenchFlags {
  ScoreFlags score;
  KeepFlags keep;
  std::vector<std::string> traces;
  std::string suite;
  std::vector<std::string> targets;
  std::string folder;
  uint64_t order_seed = 1;
  bool quick = false;
  bool json = false;
};

// The traces of the command line, or of the suite's file.
Result<Suite> TakeSuite(const BenchFlags& flags) {
  if (flags.traces.empty() == flags.suite.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  flags.suite.empty()
                      ? "which work are the drives scored for?\n  try:  TRACE, several of them, or "
                        "--suite FILE"
                      : "--suite names the traces; others beside it go into its file");
  }
  if (!flags.suite.empty()) return ReadSuite(flags.suite);
  Suite suite;
  std::set<std::string> named;
  for (const std::string& trace : flags.traces) {
    if (!named.insert(trace).second) {
      return Status(StatusCode::kInvalidArgument, trace + " is named twice");
    }
    suite.traces.push_back({1, trace});
  }
  suite.name = std::filesystem::path(flags.traces.front()).stem().string();
  if (flags.traces.size() > 1) {
    suite.name += "-and-" + std::to_string(flags.traces.size() - 1) + "-more";
  }
  return suite;
}

// What the bench of one drive comes to, if each of its campaigns has a report.
struct DriveOutcome {
  std::string target;
  std::string source;  // the file that holds it
  std::string json;
  std::vector<ResultToKeep::Traces> traces;
};

// Of a bench of one trace its report, of more their suite.
Result<std::vector<DriveOutcome>> OutcomesOf(const BenchOptions& bench, const Suite& suite,
                                             bool is_suite,
                                             const std::vector<BenchResult>& results) {
  std::vector<DriveOutcome> outcomes;
  for (size_t i = 0; i < bench.targets.size(); ++i) {
    DriveOutcome outcome{.target = bench.targets[i], .source = {}, .json = {}, .traces = {}};
    std::vector<std::string> reports;
    for (size_t t = 0; t < bench.traces.size(); ++t) {
      const BenchResult& result = results[t * bench.targets.size() + i];
      if (!result.status.ok()) continue;
      reports.push_back(ScoreJsonText(result.report));
      const std::string prefix = is_suite ? std::to_string(t + 1) + "-" : "";
      outcome.traces.push_back({result.folder, prefix});
      outcome.source = result.folder + "/report.json";
    }
    if (reports.size() < bench.traces.size()) continue;
    outcome.json = reports.front();
    if (is_suite) {
      ASSIGN_OR_RETURN(outcome.json, SuiteResultText(suite, bench.order_seed, reports));
      const std::string name =
          std::filesystem::path(BenchFolderOf(bench, 0, outcome.target)).filename().string();
      outcome.source = bench.folder + "/suite-" + name + ".json";
      RETURN_IF_ERROR(ReplaceFile(outcome.source, outcome.json));
    }
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

Result<ResultsComparison> CompareOutcomes(const std::vector<DriveOutcome>& outcomes,
                                          bool is_suite) {
  ResultsComparison all;
  std::vector<ComparedDrive> drives;
  std::vector<ComparedSuite> suites;
  for (const DriveOutcome& outcome : outcomes) {
    if (is_suite) {
      ASSIGN_OR_RETURN(SuiteScore score, ParseSuiteScore(outcome.json));
      suites.push_back({outcome.target, outcome.source, std::move(score)});
    } else {
      ASSIGN_OR_RETURN(MeasuredScore score, ParseMeasuredScore(outcome.json));
      drives.push_back({outcome.target, outcome.source, std::move(score)});
    }
  }
  if (drives.size() > 1) all.scores = CompareDrives(std::move(drives));
  if (suites.size() > 1) all.suites = CompareSuites(std::move(suites));
  return all;
}

// The drives side by side, as `compare` shows them, and the page of it.
Status TellOutcomes(const std::vector<DriveOutcome>& outcomes, bool is_suite, bool json,
                    const std::string& folder) {
  if (outcomes.size() < 2) {
    for (const DriveOutcome& one : outcomes) {
      Print(stdout, json ? one.json : "Report: " + one.source + "\n");
    }
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const ResultsComparison all, CompareOutcomes(outcomes, is_suite));
  const std::string text = JsonText(ResultsJson(all)) + "\n";
  RETURN_IF_ERROR(ReplaceFile(folder + "/bench.json", text));
  const std::string page = folder + "/bench.html";
  RETURN_IF_ERROR(ReplaceFile(page, PageHtml(ResultsPage(all))));
  if (json) {
    Print(stdout, text);
    return OkStatus();
  }
  // The only escapes in it are those of its own colours.
  const std::string shown = ResultsText(all, LookOf(STDOUT_FILENO));
  std::fwrite(shown.data(), 1, shown.size(), stdout);
  Print(stdout, "\nPage: " + page + "\n");
  return OkStatus();
}

Status CheckFlags(BenchFlags* flags, const Flags& given) {
  const auto wrong = [](const std::string& what) {
    return Status(StatusCode::kInvalidArgument, what);
  };
  CampaignOptions& campaign = flags->score.campaign;
  if (flags->targets.empty()) {
    return wrong(
        "which drives are to be compared?\n"
        "  try:  --target /dev/sdX --target /dev/sdY, or --target sim:nvme-2026");
  }
  if (flags->quick) {
    if (given.Given("--cycles") || campaign.published) {
      return wrong("--quick is one cycle, and goes with neither --cycles nor --published");
    }
    campaign.cycles = 1;
  }
  const bool piece = given.Given("--from") || given.Given("--to") || given.Given("--device");
  if (piece && flags->traces.size() != 1) {
    return wrong("--device, --from and --to take a piece of one trace, and there are several");
  }
  RETURN_IF_ERROR(CheckKeepFlags(flags->keep));
  return TakeScoreFlags(given, &flags->score);
}

int RunBenchVerb(BenchFlags* flags, const Flags& given) {
  CampaignOptions& campaign = flags->score.campaign;
  if (const Status checked = CheckFlags(flags, given); !checked.ok()) return Fail(checked);
  const Result<Suite> suite = TakeSuite(*flags);
  if (!suite.ok()) return Fail(suite.status());
  // A suite's file makes a suite, also of one trace.
  const bool is_suite = !flags->suite.empty() || suite->traces.size() > 1;
  BenchOptions bench{.campaign = campaign,
                     .traces = {},
                     .targets = flags->targets,
                     .folder = flags->folder,
                     .identities = {},
                     .order_seed = flags->order_seed,
                     .checked = {}};
  for (const Suite::Trace& trace : suite->traces) {
    bench.traces.push_back(campaign.piece);
    bench.traces.back().trace_path = trace.path;
  }
  if (bench.folder.empty()) bench.folder = "bench-" + suite->name;
  TellRestoredQueues();
  const std::atomic<bool>& stop = StopOnSignals();
  // All of them before the first byte changes.
  std::vector<std::string> folders;
  for (size_t trace = 0; trace < bench.traces.size(); ++trace) {
    for (const std::string& target : bench.targets) {
      folders.push_back(BenchFolderOf(bench, trace, target));
    }
  }
  if (const Status can_go = CheckBench(&bench, stop); !can_go.ok()) return Fail(can_go);
  MadeFiles made;
  auto identities = AgreeOnTargets(flags->score, bench.traces, bench.targets, folders, stop, &made);
  if (!identities.ok()) return Fail(identities.status());
  bench.identities = *std::move(identities);
  CampaignProgress progress;
  const CampaignTools tools = progress.Tools();
  Result<std::vector<BenchResult>> results =
      RunBench(bench, tools, stop, [&](const CampaignOptions& one) {
        const std::string trace = std::filesystem::path(one.piece.trace_path).stem().string();
        return progress.EventsOf(one, one.target_path + (is_suite ? ", " + trace : "") + ", ");
      });
  progress.Clear();
  const auto touched = [](const std::string& one) { return !TargetTouchedBy(one).empty(); };
  if (std::any_of(folders.begin(), folders.end(), touched)) made.Keep();
  if (!results.ok()) return Fail(results.status());

  bool whole = true;
  Status failed;
  for (BenchResult& result : *results) {
    if (!result.status.ok()) {
      // The others are cancelled where one fails before the first run.
      const bool first = failed.ok() || failed.code() == StatusCode::kCancelled;
      if (first) failed = result.status;
      Print(stderr, "error: " + result.target + ": " + result.status.message() + "\n");
      continue;
    }
    result.report.host = progress.host();
    TakeHostOfBefore(result.folder, &result.report);
    if (const Status written = WriteScoreReport(result.report, result.folder); !written.ok()) {
      return Fail(written);
    }
    whole = TellSettingsOf(result.report) && result.report.valid() && whole;
  }
  const Result<std::vector<DriveOutcome>> outcomes = OutcomesOf(bench, *suite, is_suite, *results);
  if (!outcomes.ok()) return Fail(outcomes.status());
  if (const Status told = TellOutcomes(*outcomes, is_suite, flags->json, bench.folder);
      !told.ok()) {
    return Fail(told);
  }
  if (flags->quick) {
    std::fprintf(flags->json ? stderr : stdout,
                 "QUICK: one cycle tells no interval; these drives are not ranked.\n");
  }
  if (stop.load()) {
    std::fprintf(stderr, "stopped; the same command goes on where it was, no run is lost\n");
    return failed.ok() ? kExitDegraded : ExitStatusOf(failed);
  }
  std::vector<ResultToKeep> kept;
  const std::string name = std::filesystem::path(bench.folder).lexically_normal().filename();
  for (const DriveOutcome& one : *outcomes) {
    const std::filesystem::path drive = BenchFolderOf(bench, 0, one.target);
    kept.push_back({name + "/" + drive.filename().string(), one.json, one.traces});
  }
  if (const Status done = KeepResults(flags->keep, kept); !done.ok()) return Fail(done);
  if (!failed.ok()) return ExitStatusOf(failed);
  return whole ? kExitOk : kExitDegraded;
}

std::function<int()> DeclareBench(Flags* flags) {
  const auto options = std::make_shared<BenchFlags>();
  flags->PositionalList("TRACE", &options->traces,
                        "A .tape file; of several each counts alike, or see --suite",
                        /*required=*/false);
  flags->Text("--suite", &options->suite,
              "The traces and their weights: a line each, \"WEIGHT PATH\"", "FILE");
  flags->TextList("--target", &options->targets,
                  "Block device or file, which is written to, or a simulated drive (" +
                      SimulatedTargets() + "); once for each",
                  "PATH");
  flags->Switch("--quick", &options->quick, "One cycle: a first look, not ranked");
  DeclareScoreFlags(flags, &options->score);
  flags->Count("--order", &options->order_seed,
               "Seed of the order in which the drives take turns (default 1)");
  flags->Text("-o,--output", &options->folder,
              "Where reports and result traces go (default bench-TRACE or bench-SUITE); an "
              "unfinished bench there goes on",
              "DIR");
  DeclareKeepFlags(flags, &options->keep, /*has_traces=*/true);
  flags->Switch("--json", &options->json, "JSON as docs/score.md defines it for compare");
  return [options, flags] { return RunBenchVerb(options.get(), *flags); };
}

}  // namespace

Command BenchCommand() {
  return {
      .name = "bench",
      .summary = "Score several drives for the work in traces, in turns, and compare them",
      .examples =
          "blktape bench monday.tape --target /dev/sdX --target /dev/sdY --overwrite\n"
          "blktape bench day.tape --target /dev/sdX --target sim:nvme-2026 --overwrite\n"
          "blktape bench monday.tape --target a.img --target b.img --create --quick\n"
          "blktape bench --suite office.suite --target a.img --target sim:nvme-2026",
      .declare = DeclareBench,
  };
}

}  // namespace blktape
