#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/privileges.h"
#include "base/process.h"
#include "base/quantity.h"
#include "base/status.h"
#include "base/units.h"
#include "capture/session/capture_session.h"
#include "capture/session/live_figures.h"
#include "capture/session/source_select.h"
#include "capture/session/trace_rotation.h"
#include "capture/source/capture_source.h"
#include "capture/source/live_source.h"
#include "cli/command.h"
#include "cli/record_loop.h"
#include "cli/record_signals.h"
#include "cli/record_status.h"
#include "host/block_device.h"
#include "host/machine.h"

namespace blktape {
namespace {

struct RecordFlags {
  std::vector<std::string> devices;
  std::vector<std::string> mounts;
  bool all = false;
  std::string output;
  int64_t duration_ns = 0;
  std::string source = "auto";
  uint64_t buffer_bytes = 0;
  std::vector<std::string> ops;
  std::vector<std::string> lbas;
  bool no_process_names = false;
  bool hash_process_names = false;
  int64_t crash_window_ns = kNanosPerSecond;
  int64_t settle_ns = 40 * kNanosPerSecond;
  int64_t rotate_ns = 0;
  uint64_t rotate_bytes = 0;
  uint64_t keep_bytes = 0;
  std::optional<uint64_t> leave_free_bytes;
  uint64_t leave_free_given = 0;
  bool status = false;
  bool json = false;
  std::vector<std::string> command;
};

std::string NamesOf(const std::vector<Disk>& devices) {
  std::string names;
  for (const Disk& device : devices) {
    names += (names.empty() ? "" : ", ") + device.description.name();
    if (!device.description.model().empty()) names += " (" + device.description.model() + ")";
  }
  return names;
}

void AddNew(const std::vector<Disk>& found, std::vector<Disk>* chosen) {
  for (const Disk& device : found) {
    const bool known = std::any_of(chosen->begin(), chosen->end(),
                                   [&](const Disk& one) { return one.dev == device.dev; });
    if (!known) chosen->push_back(device);
  }
}

Result<std::vector<Disk>> ChooseDevices(const RecordFlags& flags) {
  const BlockDevices sysfs;
  std::vector<Disk> chosen;
  const auto add = [&chosen](const std::vector<Disk>& found) { AddNew(found, &chosen); };
  for (const std::string& name : flags.devices) {
    ASSIGN_OR_RETURN(const std::vector<Disk> found, sysfs.Under(name));
    const std::string base = name.substr(name.rfind('/') + 1);
    if (found.size() != 1 || found[0].description.name() != base) {
      std::fprintf(stderr, "%s lies on %s: recording that\n", name.c_str(), NamesOf(found).c_str());
    }
    add(found);
  }
  for (const std::string& path : flags.mounts) {
    ASSIGN_OR_RETURN(const std::vector<Disk> found, sysfs.UnderMount(path));
    add(found);
  }
  if (flags.all) {
    ASSIGN_OR_RETURN(const std::vector<Disk> found, sysfs.AllPhysical());
    add(found);
  }
  if (chosen.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "which disks?\n  try:  --mount /, --device NAME (lsblk lists them), or --all");
  }
  return chosen;
}

// What was asked for, as the machine is now. What a path lay on at the start goes by the names of
// the disks: once unmounted it lies on another one.
Result<std::vector<Disk>> FindAgain(const RecordFlags& flags, const std::vector<Disk>& at_start) {
  const BlockDevices sysfs;
  std::vector<Disk> found;
  std::vector<std::string> names = flags.devices;
  if (!flags.mounts.empty()) {
    for (const Disk& disk : at_start) names.push_back(disk.description.name());
  }
  for (const std::string& name : names) {
    const Result<std::vector<Disk>> disks = sysfs.Under(name);
    if (disks.ok()) AddNew(*disks, &found);
  }
  if (flags.all) {
    const Result<std::vector<Disk>> disks = sysfs.AllPhysical();
    if (disks.ok()) AddNew(*disks, &found);
  }
  return found;
}

Result<SessionOptions> MakeSessionOptions(const RecordFlags& flags, const BufferPlan& buffers) {
  SessionOptions options;
  for (const std::string& names : flags.ops) RETURN_IF_ERROR(options.filter.AddOps(names));
  for (const std::string& range : flags.lbas) RETURN_IF_ERROR(options.filter.AddRange(range));
  if (flags.crash_window_ns < 100 * kNanosPerMilli) {
    return Status(StatusCode::kInvalidArgument, "--crash-window is at least 100ms");
  }
  options.crash_window_ns = flags.crash_window_ns;
  if (flags.hash_process_names) options.process_names = "hashed";
  if (flags.no_process_names) options.process_names = "none";
  for (const std::string& word : flags.command) {
    options.command += (options.command.empty() ? "" : " ") + word;
  }
  options.buffer_limit_bytes = buffers.limit_bytes;
  options.file.leave_free_bytes = flags.leave_free_bytes;
  options.waits_for_disks = flags.all;
  return options;
}

void PrintSummary(const CaptureSession& session, const LiveFigures& figures,
                  const RecordLoopResult& loop) {
  const std::string& path = session.file().path();
  std::printf("%s: %s in %s on %s\n", path.c_str(), FormatCounted(figures.ios, "I/O").c_str(),
              FormatDurationNs(figures.elapsed_ns).c_str(), NamesOf(session.devices()).c_str());
  std::printf("  by %s, %s", std::string(session.source().name()).c_str(),
              FormatBytes(figures.file_bytes).c_str());
  // Of this file: the I/Os above are of all.
  if (session.file().records() > 0) {
    std::printf(" (%s B an I/O)", FormatNumber(static_cast<double>(figures.file_bytes) /
                                               static_cast<double>(session.file().records()))
                                      .c_str());
  }
  std::printf(", %s of CPU\n", FormatDurationNs(figures.cpu_ns).c_str());
  if (figures.own_excluded > 0) {
    std::printf("  %s of the recorder itself left out\n",
                FormatCounted(figures.own_excluded, "I/O").c_str());
  }
  if (figures.filtered > 0) {
    std::printf("  %s left out by the filters\n", FormatCounted(figures.filtered, "I/O").c_str());
  }
  if (figures.files_finished > 1) {
    std::printf("  the last of %s\n", FormatCounted(figures.files_finished, "trace").c_str());
  }
  if (loop.command_status) std::printf("  command: exit status %d\n", *loop.command_status);
  if (!loop.settled)
    std::printf("  data of the command may still have been on its way to the disk\n");
  if (figures.lost_events > 0) {
    std::printf("  LOST: %s%s; `blktape info %s` says where\n",
                figures.lost_events_is_lower_bound ? "at least " : "",
                FormatCounted(figures.lost_events, "event").c_str(), path.c_str());
  } else {
    std::printf("  nothing was lost\n");
  }
}

void PrintJson(const CaptureSession& session, const LiveFigures& figures,
               const RecordLoopResult& loop) {
  Json json;
  json["path"] = session.file().path();
  json["source"] = std::string(session.source().name());
  for (const Disk& device : session.devices()) {
    json["devices"].push_back(device.description.name());
  }
  json["files_finished"] = figures.files_finished;
  json["ios"] = figures.ios;
  json["elapsed_ns"] = figures.elapsed_ns;
  json["file_bytes"] = figures.file_bytes;
  json["lost_events"] = figures.lost_events;
  json["lost_events_is_lower_bound"] = figures.lost_events_is_lower_bound;
  json["own_excluded"] = figures.own_excluded;
  json["filtered"] = figures.filtered;
  json["cpu_ns"] = figures.cpu_ns;
  if (loop.command_status) json["command_status"] = *loop.command_status;
  json["settled"] = loop.settled;
  std::printf("%s\n", JsonText(json).c_str());
}

// Where traces go: one file, or a folder of files named by disk and time.
class Output {
 public:
  static Result<Output> Create(const RecordFlags& flags, const std::vector<Disk>& disks) {
    Output output;
    if (flags.output.empty()) {
      return Status(StatusCode::kInvalidArgument, "where to?\n  try:  -o monday.tape");
    }
    output.name_ = flags.output;
    for (const Disk& disk : disks) output.disks_.push_back(disk.description.name());
    std::error_code unreadable;
    output.is_folder_ = std::filesystem::is_directory(flags.output, unreadable);
    if (flags.rotate_ns > 0) output.rotation_.every_ns = flags.rotate_ns;
    if (flags.rotate_bytes > 0) output.rotation_.at_bytes = flags.rotate_bytes;
    if (flags.keep_bytes > 0) output.rotation_.keep_bytes = flags.keep_bytes;
    if (!output.is_folder_ && (output.rotation_.rotates() || output.rotation_.keep_bytes)) {
      return Status(StatusCode::kInvalidArgument,
                    flags.output +
                        " is no folder, and --rotate and --keep need one: traces are "
                        "named by disk and time\n  try:  mkdir " +
                        flags.output);
    }
    return output;
  }

  // A name that is free; for one file, NAME first, then NAME-2 ...
  std::string NextPath() const {
    if (is_folder_) return RotatedPath(name_, disks_, ReadClocks().wall_ns);
    return FreePath(name_);
  }
  std::string FirstPath() const { return is_folder_ ? NextPath() : name_; }
  std::string folder() const {
    if (is_folder_) return name_;
    const std::string parent = std::filesystem::path(name_).parent_path().string();
    return parent.empty() ? "." : parent;
  }
  bool is_folder() const { return is_folder_; }
  std::string series() const { return SeriesOf(disks_); }
  const RotationOptions& rotation() const { return rotation_; }

 private:
  std::string name_;
  bool is_folder_ = false;
  std::vector<std::string> disks_;
  RotationOptions rotation_;
};

// What a recording needs no more once it runs. A folder of another user's can be written by root's
// right alone, so that stays for later files.
void GiveUpPrivileges(const Output& output, const LiveSource& source) {
  std::vector<int> kept = source.KeptCapabilities();
  struct stat info{};
  if (stat(output.folder().c_str(), &info) == 0 && info.st_uid != geteuid()) {
    kept.push_back(CAP_DAC_OVERRIDE);
  }
  // No reason not to record, but the user is to know: docs/privacy.md promises both.
  const auto tell = [](const char* what, const Status& status) {
    if (status.ok()) return;
    std::fprintf(stderr, "warning: %s: %s; recording goes on\n", what, status.message().c_str());
  };
  tell("rights of root are kept", DropCapabilities(kept));
  tell("system calls that are not needed stay allowed", ForbidUnusedSystemCalls());
}

Result<int> Record(const RecordFlags& flags) {
  if (flags.status) {
    RETURN_IF_ERROR(PrintRecordings(flags.json));
    return kExitOk;
  }
  SourceRequest request;
  ASSIGN_OR_RETURN(request.devices, ChooseDevices(flags));
  ASSIGN_OR_RETURN(const Output output, Output::Create(flags, request.devices));
  request.kind = flags.source;
  const BufferPlan buffers = PlanBuffersHere();
  request.buffer_bytes_per_cpu = flags.buffer_bytes;
  ASSIGN_OR_RETURN(SessionOptions options, MakeSessionOptions(flags, buffers));
  options.find_disks = [&flags, &request] { return FindAgain(flags, request.devices); };
  RaiseOpenFilesLimit();
  // From here on a signal ends the recording in order.
  RecordSignals signals;
  ASSIGN_OR_RETURN(StartedSource started, StartLiveSource(request));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<CaptureSession> session,
      CaptureSession::Begin(std::move(started.source), output.FirstPath(), options, &started.told));
  const bool terminal = isatty(STDERR_FILENO) != 0;
  std::fprintf(stderr, "recording %s by %s into %s%s\n", NamesOf(request.devices).c_str(),
               std::string(session->source().name()).c_str(), session->file().path().c_str(),
               terminal && flags.command.empty() ? "; ^C ends it" : "");
  // Not before: where nothing works the error names them all. What to do about it is for those who
  // ask for that source.
  for (const std::string& refused : started.refused) {
    std::fprintf(stderr, "not used: %s\n", refused.substr(0, refused.find('\n')).c_str());
  }
  for (const Disk& disk : request.devices) {
    if (!IsNvmeMultipath(disk)) continue;
    std::fprintf(stderr,
                 "warning: %s is an NVMe drive with several paths: completions may not be seen\n"
                 "  try:  booting with nvme_core.multipath=N\n",
                 disk.description.name().c_str());
  }
  RecordLoopOptions loop_options;
  if (flags.duration_ns > 0) loop_options.duration_ns = flags.duration_ns;
  loop_options.command = flags.command;
  loop_options.settle_ns = flags.settle_ns;
  loop_options.live_line = terminal;
  loop_options.files.rotation = output.rotation();
  if (output.is_folder()) loop_options.files.folder = output.folder();
  loop_options.files.series = output.series();
  loop_options.files.next_path = [&output] { return output.NextPath(); };
  loop_options.after_start = [&] { GiveUpPrivileges(output, session->source()); };
  const Result<RecordLoopResult> loop = RunRecordLoop(session.get(), &signals, loop_options);
  // Whatever ended it: what has been recorded is finished as far as it can be.
  const Status finished = session->Finish();
  for (const std::string& news : session->TakeNews()) std::fprintf(stderr, "%s\n", news.c_str());
  if (!loop.ok()) return loop.status();
  RETURN_IF_ERROR(finished);
  const LiveFigures figures = session->Figures(/*begin_interval=*/false);
  (flags.json ? PrintJson : PrintSummary)(*session, figures, *loop);
  if (loop->command_status.value_or(0) != 0) return kExitFailed;
  return figures.lost_events > 0 ? kExitDegraded : kExitOk;
}

}  // namespace

Command RecordCommand() {
  Command command;
  command.name = "record";
  command.summary = "Record the block I/O of this machine";
  command.examples =
      "blktape record --mount / -o monday.tape\n"
      "blktape record --device nvme0n1 --duration 8h -o day.tape\n"
      "blktape record --mount /home -o build.tape -- make -j8\n"
      "blktape record --all --rotate 1d --keep 5G -o /var/lib/blktape\n"
      "blktape record --status";
  command.declare = [](Flags* declare) {
    auto flags = std::make_shared<RecordFlags>();
    declare->TextList("-d,--device", &flags->devices,
                      "A disk, or a device on top of disks (LVM, crypt, md)", "DEVICE");
    declare->TextList("-m,--mount", &flags->mounts, "The disks under this path", "PATH");
    declare->Switch("--all", &flags->all, "All physical disks");
    declare->Text("-o,--output", &flags->output,
                  "The trace, or a folder of traces; without a terminal, SIGHUP begins a new one",
                  "FILE");
    declare->Duration("--duration", &flags->duration_ns, "End after this time, as in 90s or 8h");
    declare->Duration("--rotate", &flags->rotate_ns,
                      "Into a folder: begin a new file after this time, as in 1h; 1d: at midnight");
    declare->Size("--rotate-size", &flags->rotate_bytes,
                  "Into a folder: begin a new file at this size, as in 500M");
    declare->Size(
        "--keep", &flags->keep_bytes,
        "Into a folder: remove the oldest traces of this disk (if several are recorded: of "
        "several disks, whichever) when these together are larger than this, as in 5G, or "
        "when the disk is nearly full. Otherwise nothing is removed");
    std::vector<std::string> sources = {"auto"};
    for (const std::string& name : LiveSourceNames()) sources.push_back(name);
    declare->Choice("--source", &flags->source, sources,
                    "The source of events (default auto: the first that works)");
    declare->Size("--buffer", &flags->buffer_bytes,
                  "Kernel memory per CPU for events (default: depends on the machine's memory)");
    declare->TextList("--op", &flags->ops,
                      "Keep only these operations, as in read,write,discard,flush", "LIST");
    declare->TextList("--lba", &flags->lbas,
                      "Keep only I/Os that touch FIRST-LAST, in sectors of 512 B", "RANGE");
    declare->Switch("--no-process-names", &flags->no_process_names, "Leave out process names");
    declare->Switch("--hash-process-names", &flags->hash_process_names,
                    "Store hashes instead of process names");
    declare->Duration("--crash-window", &flags->crash_window_ns,
                      "The most that a crash may lose of the recording (default 1s)");
    declare->Size("--leave-free", &flags->leave_free_given,
                  "Pause while the trace's disk has less free space than this (default 1 % of it, "
                  "at most 1G)");
    declare->Duration("--settle", &flags->settle_ns,
                      "After COMMAND: wait at most this long for its writes (default 40s)");
    declare->Switch("--status", &flags->status, "Show the figures of running recordings");
    declare->Switch("--json", &flags->json, "Print the result as JSON");
    declare->AfterDashes(&flags->command, "run this and record until it ends");
    return [flags, declare]() {
      if (declare->Given("--leave-free")) flags->leave_free_bytes = flags->leave_free_given;
      const Result<int> code = Record(*flags);
      return code.ok() ? *code : Fail(code.status());
    };
  };
  return command;
}

}  // namespace blktape
