#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "analysis/profile.h"
#include "analysis/profile_trace.h"
#include "base/json.h"
#include "base/quantity.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/loss_text.h"
#include "cli/print.h"
#include "cli/progress_line.h"
#include "cli/queue_flags.h"
#include "cli/replay_report.h"
#include "cli/target_consent.h"
#include "cli/temp_folder.h"
#include "format/loss.h"
#include "format/partial_file.h"
#include "format/trace_reader.h"
#include "replay/replayer.h"

namespace blktape {
namespace {

struct ReplayFlags {
  ReplayOptions replay;
  std::string target;
  std::vector<std::string> maps;
  std::vector<std::string> settings;
  bool timed = false;
  bool closed = false;
  bool max = false;
  uint64_t queue_depth = 0;
  std::string think = "drop";
  int64_t idle_cap_ns = 0;
  int64_t from_ns = 0;
  int64_t to_ns = 0;
  int64_t duration_ns = 0;
  bool repeat = false;
  std::string remap_offset;
  uint64_t compressible = 0;
  uint64_t dedupe = 0;
  uint64_t depth = 0;
  uint64_t threads = 1;
  bool no_realtime = false;
  bool allow_overlaps = false;
  bool create = false;
  bool json = false;
  bool yes = false;
  bool dry_run = false;
};

Status TakeMappings(ReplayFlags* flags) {
  std::vector<ReplayOptions::Mapping>& mappings = flags->replay.mappings;
  if (!flags->target.empty()) mappings.push_back({"", flags->target});
  for (const std::string& map : flags->maps) {
    const size_t equals = map.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == map.size()) {
      return Status(StatusCode::kInvalidArgument,
                    "--map wants DEVICE=TARGET, as in nvme0n1=/dev/sdb, not \"" + map + "\"");
    }
    mappings.push_back({map.substr(0, equals), map.substr(equals + 1)});
  }
  return OkStatus();
}

Status TakeRule(const Flags& given, ReplayFlags* flags) {
  ReplayOptions& replay = flags->replay;
  if (flags->timed + flags->closed + flags->max > 1 ||
      (given.Given("--queue-depth") && (flags->timed || flags->closed))) {
    return Status(StatusCode::kInvalidArgument,
                  "--timed, --closed and --max or --queue-depth exclude one another");
  }
  if (given.Given("--queue-depth")) {
    replay.rule = TimingRule::kQueueDepth;
  } else if (flags->max) {
    replay.rule = TimingRule::kMaxOrder;
  } else if (flags->closed) {
    replay.rule = TimingRule::kClosed;
  }
  const bool timed = replay.rule == TimingRule::kTimed;
  const bool punctual = IsPunctual(replay.rule);
  if (!punctual && given.Given("--speed") && flags->think != "keep") {
    return Status(StatusCode::kInvalidArgument,
                  "--speed means nothing at maximum speed, unless think time is kept");
  }
  if (punctual && given.Given("--think")) {
    return Status(StatusCode::kInvalidArgument, "--think goes with --max or --queue-depth");
  }
  replay.keep_think_time = flags->think == "keep";
  if (given.Given("--idle-cap")) replay.idle_cap_ns = flags->idle_cap_ns;
  if (given.Given("--from")) replay.from_ns = flags->from_ns;
  if (given.Given("--to")) replay.to_ns = flags->to_ns;
  if (given.Given("--duration")) replay.duration_ns = flags->duration_ns;
  if (given.Given("--spin")) replay.spin_in_flight_ns = replay.spin_ns;
  if (replay.loops == 0) {
    return Status(StatusCode::kInvalidArgument,
                  "--loop wants at least 1\n  try:  --repeat, to go on until stopped");
  }
  if (flags->repeat) replay.loops = 0;
  const bool ends = !flags->repeat || (timed && replay.duration_ns);
  if (flags->dry_run && !ends) {
    return Status(StatusCode::kInvalidArgument,
                  "a plan that is repeated has no end to show\n"
                  "  try:  --dry-run without --repeat, which shows one pass");
  }
  return OkStatus();
}

Status TakeOffset(ReplayFlags* flags) {
  if (flags->remap_offset.empty()) return OkStatus();
  if (flags->replay.remap != "offset") {
    return Status(StatusCode::kInvalidArgument, "--remap-offset goes with --remap offset");
  }
  const bool down = flags->remap_offset[0] == '-';
  ASSIGN_OR_RETURN(const uint64_t bytes,
                   ParseBytes(std::string_view(flags->remap_offset).substr(down ? 1 : 0)));
  if (bytes > INT64_MAX) return Status(StatusCode::kInvalidArgument, "the offset is too large");
  flags->replay.remap_offset_bytes =
      down ? -static_cast<int64_t>(bytes) : static_cast<int64_t>(bytes);
  return OkStatus();
}

Status TakeFlags(const Flags& given, ReplayFlags* flags) {
  RETURN_IF_ERROR(TakeMappings(flags));
  RETURN_IF_ERROR(TakeRule(given, flags));
  RETURN_IF_ERROR(TakeOffset(flags));
  ASSIGN_OR_RETURN(flags->replay.queue_settings, ParseQueueSettings(flags->settings));
  // What is far too large stays too large; whoever runs the replay says what the limit is.
  const auto narrow = [](uint64_t count) {
    return static_cast<uint32_t>(std::min<uint64_t>(count, UINT32_MAX));
  };
  flags->replay.queue_depth = narrow(flags->queue_depth);
  flags->replay.depth = narrow(flags->depth);
  flags->replay.threads = std::max(1U, narrow(flags->threads));
  flags->replay.compressible_percent = narrow(flags->compressible);
  flags->replay.dedupe_percent = narrow(flags->dedupe);
  flags->replay.realtime = !flags->no_realtime;
  flags->replay.order_overlaps = !flags->allow_overlaps;
  return OkStatus();
}

// What the recording lacks, on stderr; whether anything does.
bool TellLosses(const std::string& trace_path) {
  const auto reader = TraceReader::Open(trace_path);
  if (!reader.ok()) return false;
  const std::optional<proto::Summary>& summary = (*reader)->summary();
  if (!summary) {
    std::fprintf(stderr,
                 "warning: the trace was not finished by its writer; its end may be missing\n");
    return true;
  }
  const LossTally losses = TallyOf(*summary);
  for (const auto& [reason, total] : losses.by_reason()) {
    if (!MeansLostEvents(reason)) continue;
    std::fprintf(stderr, "warning: the recording lacks %s: %s\n", LossAmount(total).c_str(),
                 LossReasonName(reason));
  }
  return losses.lost_events() > 0;
}

// What must be free for the result: a record of it has three times and an ordinal, and is at most
// as long as two of a trace. Of a replay without an end: what one pass takes. Of a part of a trace
// nobody knows before; some is needed anyway.
uint64_t ResultBytes(const ReplayFlags& flags) {
  constexpr uint64_t kOfAPart = 64U << 20;
  if (flags.replay.from_ns || flags.replay.to_ns || flags.replay.duration_ns) return kOfAPart;
  std::error_code error;
  const uintmax_t trace_bytes = std::filesystem::file_size(flags.replay.trace_path, error);
  if (error) return 0;
  const uint64_t passes = std::max<uint64_t>(flags.replay.loops, 1);
  return trace_bytes > UINT64_MAX / 2 / passes ? UINT64_MAX : 2 * trace_bytes * passes;
}

int RunReplayVerb(ReplayFlags* flags, const Flags& given) {
  if (Status taken = TakeFlags(given, flags); !taken.ok()) return Fail(taken);
  TellRestoredQueues();
  const std::atomic<bool>& stop = StopOnSignals();
  // Whoever confirms that a target is overwritten is not told afterwards that nothing can be kept.
  const bool keep = !flags->replay.result_path.empty() && !flags->dry_run;
  if (keep) {
    const Result<PartialFile> probe = PartialFile::Create(flags->replay.result_path);
    if (!probe.ok()) return Fail(probe.status());
    probe->Remove();
  }
  MadeFiles made;
  const Status created =
      CreateScratchTargets(flags->replay, flags->create, /*prepared=*/false, stop, &made);
  if (!created.ok()) return Fail(created);
  const Result<ReplayPreview> preview = PreviewReplay(flags->replay, flags->dry_run, stop);
  if (!preview.ok()) return Fail(preview.status());
  TellShared(*preview, "--map DEVICE=TARGET for each, or =none to leave one out");
  const bool lost = TellLosses(flags->replay.trace_path);
  if (flags->dry_run) {
    Print(stdout, PreviewText(*preview));
    return kExitOk;
  }
  if (const std::string text = ExpectedTimeText(flags->replay, *preview); !text.empty()) {
    std::fprintf(stderr, "%s\n", text.c_str());
  }
  if (ChangesDevices(flags->replay, *preview) && !flags->yes) {
    if (Status confirmed = ConfirmOverwrite(*preview, stop); !confirmed.ok())
      return Fail(confirmed);
  }
  flags->replay.identities = preview->identities;
  made.Keep();

  // The figures are those of the result trace, kept or not.
  std::optional<TempFolder> scratch;
  if (!keep) {
    const std::string& trace = flags->replay.trace_path;
    Result<TempFolder> made = TempFolder::Create(PlacesForResultOf(trace), ResultBytes(*flags));
    if (!made.ok()) return Fail(made.status());
    scratch.emplace(*std::move(made));
    flags->replay.result_path = scratch->path() + "/result.tape";
  }
  Result<proto::ReplayOutcome> outcome = [&] {
    ProgressLine line;
    ReplayProgress before;
    return RunReplay(flags->replay, stop, [&](const ReplayProgress& now) {
      line.Show(ProgressText(now, before));
      before = now;
    });
  }();
  if (!outcome.ok()) return Fail(outcome.status());
  const Result<Profile> profile = ProfileTrace(flags->replay.result_path, {.footprint = false});
  if (!profile.ok()) return Fail(profile.status());

  if (flags->json) {
    std::puts(JsonText(ReplayJson(*profile, *outcome)).c_str());
  } else {
    Print(stdout, ReplayText(*profile, *outcome));
    if (keep) std::printf("\nresult      %s\n", flags->replay.result_path.c_str());
  }
  // Damage shows only in reading the whole trace, which the replay has done by now.
  const bool damaged = !lost && outcome->trace_lost_events() > 0;
  if (damaged) {
    std::fprintf(stderr,
                 "warning: the trace is damaged: what is missing was not replayed\n  try:  blktape "
                 "info %s\n",
                 flags->replay.trace_path.c_str());
  }
  const bool whole = !lost && !damaged && outcome->settings_not_restored().empty() &&
                     !outcome->stopped_early() && outcome->errors() == 0 &&
                     outcome->short_transfers() == 0 && outcome->verify_mismatches() == 0;
  return whole ? kExitOk : kExitDegraded;
}

void DeclareTiming(Flags* flags, ReplayFlags* options) {
  flags->Number("--speed", &options->replay.speed,
                "Divide the original times or think times by X: 2 is twice as fast (default 1)");
  flags->Duration("--idle-cap", &options->idle_cap_ns,
                  "Limit idle times of the recording to this, as in 25ms");
  flags->Switch("--timed", &options->timed,
                "Issue at the original times, whatever the target does (the default)");
  flags->Switch("--closed", &options->closed,
                "Issue each I/O when the I/Os that it waited for have completed, plus think time");
  flags->Switch("--max", &options->max,
                "As fast as the target can, in the recording's order of completion");
  flags->Count("--queue-depth", &options->queue_depth,
               "As fast as the target can, with at most N in flight");
  flags->Choice("--think", &options->think, {"keep", "drop"},
                "At maximum speed: keep the recorded think time (default drop)");
  flags->Duration("--from", &options->from_ns, "Begin this long after the trace's first I/O");
  flags->Duration("--to", &options->to_ns, "End this long after the trace's first I/O");
  flags->Count("--loop", &options->replay.loops, "Replay the trace N times in a row");
  flags->Switch("--repeat", &options->repeat, "Repeat the trace until stopped or --duration");
  flags->Duration("--duration", &options->duration_ns, "Issue no I/O after this time");
}

void DeclareMapping(Flags* flags, ReplayFlags* options) {
  flags->Choice("--remap", &options->replay.remap, {"refuse", "offset", "scale", "wrap"},
                "If the trace does not fit the target (default refuse)");
  flags->Text("--remap-offset", &options->remap_offset,
              "With --remap offset: add this, as in -10G (default: begin at 0)", "SIZE");
  flags->Switch("--align", &options->replay.align, "Widen requests to whole blocks of the target");
  flags->Choice("--unsupported", &options->replay.unsupported, {"fail", "skip", "emulate"},
                "Operations that the target lacks (default fail)");
  DeclareQueueSettings(flags, &options->settings);
  flags->Switch("--skip-writes", &options->replay.skip_writes,
                "Change nothing; skipped I/Os keep their time");
  flags->Switch("--skip-discards", &options->replay.skip_discards, "Leave out discards");
  flags->Switch("--secure-erase", &options->replay.secure_erase,
                "Execute the trace's secure erases, which cannot be undone");
}

void DeclareRun(Flags* flags, ReplayFlags* options) {
  flags->Choice("--engine", &options->replay.engine,
                {"auto", "io_uring", "libaio", "simulated", "null"},
                "The engine that issues the I/Os (default auto: probes the target)");
  flags->Switch("--sqpoll", &options->replay.submission_thread,
                "io_uring: a kernel thread submits; needs its own CPU");
  flags->Switch("--iopoll", &options->replay.polled_completion,
                "io_uring: poll for completions (drivers with poll queues, such as NVMe)");
  flags->Count("--depth", &options->depth,
               "At most N in flight if no queue depth is given (default: the target's)");
  flags->Count("--threads", &options->threads,
               "Issue from N threads if one is too busy: timed or at a queue depth (default 1)");
  flags->Count("--compressible", &options->compressible,
               "Percentage of written data that compresses away (default 0)");
  flags->Count("--dedupe", &options->dedupe,
               "Percentage of written blocks that repeat (default 0)");
  flags->Switch("--payload-repeat", &options->replay.repeat_payload,
                "Write one repeated byte per write instead");
  flags->Switch("--verify", &options->replay.verify,
                "Stamp every sector written; check reads and a final sweep");
  flags->Switch("--allow-overlaps", &options->allow_overlaps,
                "Allow conflicting I/Os in flight together");
  flags->Choice("--on-error", &options->replay.on_error, {"stop", "continue"},
                "After an I/O failed (default stop)");
  flags->Duration("--spin", &options->replay.spin_ns,
                  "How long to poll before a due time, longer after late wakeups (default 150us; "
                  "50us while I/Os are in flight)");
  flags->Switch("--no-realtime", &options->no_realtime,
                "No SCHED_FIFO, memory lock, pinned CPU, idle limit, reserve thread");
  flags->Size(
      "--memory", &options->replay.buffer_bytes,
      "Memory for I/Os in flight and prepared (default 32M, timed up to 256M by mean size)");
}

std::function<int()> DeclareReplay(Flags* flags) {
  const auto options = std::make_shared<ReplayFlags>();
  flags->Positional("TRACE", &options->replay.trace_path, "A .tape file");
  flags->Text("--target", &options->target, "Block device or file to replay on", "PATH");
  flags->TextList("--map", &options->maps,
                  "Recorded device to target, as in nvme0n1=/dev/sdb; =none leaves it out",
                  "D=PATH");
  flags->Text("-o,--output", &options->replay.result_path, "Keep the result as a trace", "FILE");
  flags->Switch("--overwrite", &options->replay.overwrite,
                "Accept that the target's content is lost");
  flags->Switch("--yes", &options->yes, "Do not ask for confirmation");
  flags->Switch("--create", &options->create, "Make the target file if it does not exist");
  flags->Switch("--dry-run", &options->dry_run, "Show the whole plan, write nothing");
  flags->Switch("--json", &options->json, "JSON as defined in docs/metrics.md (ns, bytes)");
  DeclareTiming(flags, options.get());
  DeclareMapping(flags, options.get());
  DeclareRun(flags, options.get());
  return [options, flags] { return RunReplayVerb(options.get(), *flags); };
}

}  // namespace

Command ReplayCommand() {
  return {
      .name = "replay",
      .summary = "Issue the I/Os of a trace on a drive or a file, on time or as fast as possible",
      .examples =
          "blktape replay monday.tape --target /dev/sdX --overwrite\n"
          "blktape replay monday.tape --target scratch.img --create --overwrite\n"
          "blktape replay monday.tape --target /dev/sdX --skip-writes --speed 4\n"
          "blktape replay monday.tape --target /dev/sdX --overwrite --closed\n"
          "blktape replay monday.tape --target /dev/sdX --overwrite --max -o max.tape\n"
          "blktape replay monday.tape --target /dev/sdX --overwrite --idle-cap 25ms\n"
          "blktape replay two.tape --map sda=/dev/sdX --map sdb=none --overwrite",
      .declare = DeclareReplay,
  };
}

}  // namespace blktape
