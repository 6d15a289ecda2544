#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/quantity.h"
#include "base/status.h"
#include "base/text_layout.h"
#include "bench/campaign.h"
#include "bench/corners.h"
#include "bench/corners_report.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/kept_results.h"
#include "cli/print.h"
#include "cli/progress_line.h"
#include "cli/queue_flags.h"
#include "cli/replay_report.h"
#include "cli/score_flags.h"
#include "cli/target_consent.h"
#include "cli/terminal.h"
#include "replay/engine/drive_model.h"
#include "replay/replayer.h"
#include "replay/target/target.h"

namespace blktape {
namespace {

struct CornersFlags {
  CornerOptions corners;
  std::string target_path;
  uint64_t create_bytes = 0;
  std::vector<std::string> settings;
  KeepFlags keep;
  std::string name;
  bool yes = false;
  bool json = false;
  bool dry_run = false;
};

// What an engine without a target is said to have.
constexpr uint64_t kSimulatedBytes = uint64_t{64} << 30;

// "sim:NAME" is the simulated drive of that name.
Status TakeSimulatedTarget(CornersFlags* flags, std::vector<proto::Device>* targets) {
  ReplayOptions& replay = flags->corners.replay;
  if (!flags->target_path.starts_with(kSimulatedTarget)) return OkStatus();
  if (replay.engine != "auto" && replay.engine != "simulated") {
    return Status(StatusCode::kInvalidArgument,
                  "a simulated drive goes by no other --engine than simulated");
  }
  replay.engine = "simulated";
  replay.simulated_drive = flags->target_path.substr(sizeof kSimulatedTarget - 1);
  RETURN_IF_ERROR(DriveModelNamed(replay.simulated_drive).status());
  proto::Device& target = targets->emplace_back();
  target.set_name(flags->target_path);
  target.set_model("simulated drive " + replay.simulated_drive);
  target.set_size_bytes(kSimulatedBytes);
  return OkStatus();
}

bool NeedsTarget(const CornerOptions& corners) {
  return corners.replay.engine != "simulated" && corners.replay.engine != "null";
}

// Opens the target, which may refuse, and asks. What is then tested is this target.
Status CheckTarget(CornersFlags* flags, const std::atomic<bool>& stop,
                   std::vector<proto::Device>* targets, MadeFiles* made) {
  CornerOptions& corners = flags->corners;
  const std::string& path = flags->target_path;
  std::error_code error;
  if (flags->create_bytes > 0 && !std::filesystem::exists(path, error)) {
    // What a test reads, it or the one before has written.
    RETURN_IF_ERROR(CreateScratchTarget(path, flags->create_bytes, /*prepared=*/true, made));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Target> target,
                   Target::Open(path, {.overwrite = corners.replay.overwrite}));
  corners.replay.mappings = {{"", path}};
  corners.replay.identities = {{path, target->identity()}};
  corners.target_bytes = target->size_bytes();
  corners.block_bytes = target->logical_block_bytes();
  targets->push_back(target->description());
  if (flags->yes || flags->dry_run || !target->is_block_device()) return OkStatus();
  ReplayPreview preview;
  preview.targets = *targets;
  return ConfirmOverwrite(preview, stop);
}

void TellCost(const std::vector<CornerGroup>& groups) {
  const CornerCost cost = CostOf(groups);
  std::fprintf(stderr, "takes %s, and the time to write %s",
               FormatDurationNs(cost.measured_ns).c_str(), FormatBytes(cost.written_bytes).c_str());
  if (cost.preparations > 0) std::fprintf(stderr, " and to bring the drive into the state used");
  std::fprintf(stderr, "\n");
}

void PrintPlan(const std::vector<CornerGroup>& groups) {
  for (const CornerGroup& group : groups) {
    std::printf("%s\n", group.name.c_str());
    for (const CornerStep& step : group.steps) {
      const std::string condition = step.condition.empty() ? "" : step.condition + ": ";
      std::printf("  %s%s\n", condition.c_str(), step.name.c_str());
    }
  }
}

// "corners-on-sdx", unless the user has a better one.
std::string NameOf(const CornersFlags& flags) {
  if (!flags.name.empty()) return flags.name;
  if (flags.target_path.starts_with(kSimulatedTarget)) {
    return "corners-on-" + flags.corners.replay.simulated_drive;
  }
  if (flags.target_path.empty()) return "corners-on-" + flags.corners.replay.engine;
  return "corners-on-" + std::filesystem::path(flags.target_path).filename().string();
}

int RunCornersVerb(CornersFlags* flags) {
  CornerOptions& corners = flags->corners;
  if (NeedsTarget(corners) && flags->target_path.empty()) {
    return UsageError("no target is named\n  try:  --target PATH, or --target sim:nvme-2026");
  }
  Result<std::vector<QueueSetting>> settings = ParseQueueSettings(flags->settings);
  if (!settings.ok()) return Fail(settings.status());
  corners.replay.queue_settings = *std::move(settings);
  if (const Status checked = CheckKeepFlags(flags->keep); !checked.ok()) return Fail(checked);
  CornersReport report;
  report.quick = corners.quick;
  report.seed = corners.seed;
  if (const Status taken = TakeSimulatedTarget(flags, &report.targets); !taken.ok()) {
    return Fail(taken);
  }
  const std::atomic<bool>& stop = StopOnSignals();
  corners.target_bytes = kSimulatedBytes;
  MadeFiles made;
  if (NeedsTarget(corners)) {
    TellRestoredQueues();
    if (Status checked = CheckTarget(flags, stop, &report.targets, &made); !checked.ok()) {
      return Fail(checked);
    }
  }
  const Result<std::vector<CornerGroup>> groups = PlanCorners(corners);
  if (!groups.ok()) return Fail(groups.status());
  for (const CornerGroup& group : *groups) {
    report.left_out.insert(report.left_out.end(), group.left_out.begin(), group.left_out.end());
  }
  if (flags->dry_run) {
    PrintPlan(*groups);
    TellCost(*groups);
    return kExitOk;
  }
  if (NeedsTarget(corners)) TellCost(*groups);
  made.Keep();
  const Status ran = [&] {
    ProgressLine line;
    return RunCorners(
        corners, *groups, stop,
        [&line](const CornerProgress& now) {
          line.Show(std::to_string(now.step) + "/" + std::to_string(now.steps) + "  " +
                    std::to_string(static_cast<int>(now.fraction * 100)) + " %  " +
                    FormatBytes(now.bytes_per_second) + "/s  " + now.text);
        },
        &report.results);
  }();
  report.stopped = !ran.ok();
  const bool failed = report.stopped && ran.code() != StatusCode::kCancelled;
  if (failed && report.results.empty()) return Fail(ran);
  // What was measured before is no less true.
  if (failed) report.failure = ran.message().substr(0, ran.message().find('\n'));
  const std::string json = JsonText(CornersJson(report)) + "\n";
  if (flags->json) {
    Print(stdout, json);
  } else {
    std::string heading =
        !NeedsTarget(corners)
            ? (report.targets.empty() ? "the reference drive" : report.targets.front().model())
            : DescribeTarget(report.targets.front());
    if (!report.results.empty()) heading += ", by " + report.results.front().engine;
    const size_t columns = LookOf(STDOUT_FILENO).columns;
    Print(stdout, Wrapped("", "  ", heading, columns) + "\n" + CornersText(report, columns));
  }
  // Of the null engine there is nothing to keep.
  if (!report.stopped && corners.replay.engine != "null") {
    const Status kept = KeepResults(flags->keep, {{NameOf(*flags), json}});
    if (!kept.ok()) return Fail(kept);
  }
  if (failed) return Fail(ran);
  return report.stopped ? kExitDegraded : kExitOk;
}

std::function<int()> DeclareCorners(Flags* flags) {
  const auto options = std::make_shared<CornersFlags>();
  CornerOptions& corners = options->corners;
  flags->Text("--target", &options->target_path,
              "Block device or file to test, or " + SimulatedTargets(), "PATH");
  flags->Size("--create", &options->create_bytes,
              "Make the target file with this size if it does not exist");
  flags->TextList("--only", &corners.groups,
                  "Only these groups: random, depth, sequential, incompressible, compressible, "
                  "fill, state, torture (default all)",
                  "GROUP");
  flags->Switch("--quick", &corners.quick, "Only seconds per test, spans of at most 1 GiB");
  flags->Switch("--dry-run", &options->dry_run, "Show the tests and how long they take");
  flags->Count("--seed", &corners.seed, "Seed of the addresses (default 1)");
  flags->Choice("--engine", &corners.replay.engine,
                {"auto", "io_uring", "libaio", "simulated", "null"},
                "The engine that issues the I/Os (default auto: chosen once)");
  DeclareQueueSettings(flags, &options->settings);
  flags->Switch("--overwrite", &corners.replay.overwrite,
                "Accept that the target's content is lost");
  flags->Switch("--yes", &options->yes, "Do not ask for confirmation");
  DeclareKeepFlags(flags, &options->keep, /*has_traces=*/false);
  flags->Text("--name", &options->name,
              "What the result is called there (default corners-on-TARGET)");
  flags->Switch("--json", &options->json, "JSON as defined in docs/metrics.md (ns, bytes)");
  return [options] { return RunCornersVerb(options.get()); };
}

}  // namespace

Command CornersCommand() {
  return {
      .name = "corners",
      .summary = "Test a drive with the classic synthetic loads: 4 KiB random, 128 KiB sequential",
      .examples =
          "blktape corners --target /dev/sdX --overwrite --quick\n"
          "blktape corners --target /dev/sdX --overwrite --only random --only depth\n"
          "blktape corners --target scratch.img --only torture --dry-run",
      .declare = DeclareCorners,
  };
}

}  // namespace blktape
