#include "capture/session/capture_session.h"

#include <linux/magic.h>
#include <sys/random.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/byte_stream.h"
#include "base/clock.h"
#include "base/quantity.h"
#include "base/sha256.h"
#include "base/version.h"
#include "format/process_dictionary.h"

namespace blktape {
namespace {

constexpr int64_t kAnchorIntervalNs = 60 * kNanosPerSecond;

// For OwnIoJudge. Every 30 s, once with nothing left to do, xfs writes two empty commits ("covers"
// its log), and btrfs commits what the commit before has freed.
int64_t FurtherCommitsNs(const std::string& folder) {
  struct statfs info{};
  if (statfs(folder.c_str(), &info) != 0) return 0;
  const auto type = static_cast<uint64_t>(info.f_type);
  return type == XFS_SUPER_MAGIC || type == BTRFS_SUPER_MAGIC ? 100 * kNanosPerSecond : 0;
}

// As records and events name them.
std::vector<uint32_t> OwnIds(std::vector<uint32_t> tids) {
  for (uint32_t& tid : tids) tid = LiveSource::OwnId(tid);
  return tids;
}

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

Result<std::unique_ptr<CaptureSession>> CaptureSession::Begin(std::unique_ptr<LiveSource> source,
                                                              const std::string& path,
                                                              const SessionOptions& options,
                                                              const SinkBuffer* told) {
  std::unique_ptr<CaptureSession> session(new CaptureSession(std::move(source), options));
  RETURN_IF_ERROR(session->DrawSalt());
  // Before the file is made, which is I/O already.
  session->source_->SetOwnPids({static_cast<uint32_t>(getpid())});
  RETURN_IF_ERROR(session->Open(path).status());
  session->pipeline_ = std::make_unique<CapturePipeline>(session->file_.get(), session->devices_,
                                                         session->PipelineOptions());
  session->SetOwnPids();
  session->ShowLayers();
  if (told != nullptr) told->Replay(session->pipeline_.get());
  return session;
}

CaptureSession::CaptureSession(std::unique_ptr<LiveSource> source, const SessionOptions& options)
    : source_(std::move(source)),
      options_(options),
      devices_(source_->devices()),
      present_(devices_.size(), true),
      start_(ReadClocks()),
      clocks_(start_),
      judge_([this](uint32_t device) { return own_disks_.count(device) > 0; },
             [this](int64_t ns) { return LastSync(ns); }),
      finisher_([this] { source_->MarkThread(); }) {
  options_.file.on_thread = [this] { source_->MarkThread(); };
  source_->MarkThread();
  devices_checked_ns_ = start_.monotonic_ns;
  census_ = options_.sysfs.Census();
  next_anchor_ns_ = start_.monotonic_ns + kAnchorIntervalNs;
  LiveFigures ignored;
  counter_.Fill(start_.monotonic_ns, /*begin_next=*/true, &ignored);
}

CaptureSession::~CaptureSession() = default;

Status CaptureSession::DrawSalt() {
  if (options_.process_names != "hashed") return OkStatus();
  name_salt_.resize(16);
  if (getrandom(name_salt_.data(), name_salt_.size(), 0) !=
      static_cast<ssize_t>(name_salt_.size())) {
    return ErrnoStatus(errno, "no random numbers to hash process names with");
  }
  return OkStatus();
}

proto::Header CaptureSession::MakeHeader() const {
  const ClockReading now = ReadClocks();
  proto::Header header;
  header.set_tool_version(kVersion);
  header.set_source(std::string(source_->name()));
  header.set_host(HostName());
  header.set_kernel(KernelRelease());
  for (const Disk& device : devices_) *header.add_devices() = device.description;
  *header.mutable_start() = now.anchor();
  header.set_timezone(UtcOffset(now.wall_ns));
  for (const std::string& word : options_.filter.Words()) header.add_filters(word);
  header.set_process_names(options_.process_names);
  header.set_command(options_.command);
  header.set_buffer_bytes_per_cpu(source_->buffer_bytes_per_cpu());
  return header;
}

std::unordered_set<uint32_t> CaptureSession::DisksHolding(const std::string& path) const {
  std::unordered_set<uint32_t> indexes;
  const Result<std::vector<Disk>> disks = options_.sysfs.UnderMount(FolderOf(path));
  // On tmpfs or NFS: the trace causes no I/O here.
  if (!disks.ok()) return indexes;
  for (const Disk& disk : *disks) {
    for (size_t i = 0; i < devices_.size(); ++i) {
      if (devices_[i].dev == disk.dev) indexes.insert(static_cast<uint32_t>(i));
    }
  }
  return indexes;
}

Result<std::unique_ptr<RecordingFile>> CaptureSession::Open(const std::string& path) {
  std::unique_ptr<RecordingFile> next;
  ASSIGN_OR_RETURN(next, RecordingFile::Create(path, MakeHeader(), options_.file, &counter_));
  std::unique_ptr<RecordingFile> old = std::exchange(file_, std::move(next));
  if (const Status& dropped = file_->file().rights_dropped(); !dropped.ok()) {
    news_.push_back("warning: rights of root are kept by the thread that writes: " +
                    dropped.message() + "; recording goes on");
  }
  own_disks_ = DisksHolding(path);
  judge_.SetFurtherCommits(FurtherCommitsNs(FolderOf(path)));
  next_tick_ns_ = 0;
  return old;
}

std::optional<SyncInterval> CaptureSession::LastSync(int64_t ns) const {
  const std::optional<SyncInterval> last = file_->file().LastSync(ns);
  const std::optional<SyncInterval> old = finisher_.LastSync(ns);
  if (!old || old->begin_ns > ns) return last;
  return last && last->begin_ns > old->begin_ns ? last : old;
}

std::string CaptureSession::RenameProcess(std::string_view name) const {
  if (options_.process_names == "none") return "";
  const std::string salted = name_salt_ + std::string(name);
  MemorySource source(salted);
  const Result<std::string> digest = Sha256Hex(&source);
  const std::string hash = digest.ok() ? "#" + digest->substr(0, 12) : "#";
  return name.starts_with(kKernelWorker) ? std::string(kKernelWorker) + hash : hash;
}

std::vector<uint32_t> CaptureSession::OwnPids() const {
  std::vector<uint32_t> pids = {static_cast<uint32_t>(getpid()), file_->file().thread_id()};
  for (const uint32_t id : finisher_.ThreadIds(Clock::Monotonic()->NowNs())) pids.push_back(id);
  pids.resize(std::min(pids.size(), LiveSource::kOwnPidsMost));
  return pids;
}

void CaptureSession::SetOwnPids() {
  std::vector<uint32_t> pids = OwnPids();
  if (pids == own_pids_) return;
  own_pids_ = std::move(pids);
  pipeline_->SetOwnPids(OwnIds(own_pids_));
  source_->SetOwnPids(own_pids_);
}

CapturePipelineOptions CaptureSession::PipelineOptions() {
  CapturePipelineOptions options;
  // The window that a crash may cost is divided among waiting for older I/Os in flight, the file's
  // frame, and reading the rings.
  options.hold_ns = options_.crash_window_ns / 5;
  options.own_pids = OwnIds(OwnPids());
  options.is_own = [this](const IoRecord& record, const ProcessComm& comm) {
    return !own_disks_.empty() && judge_.IsOwn(record, CommView(comm));
  };
  if (!options_.filter.empty()) {
    options.keep = [this](const IoRecord& record) { return options_.filter.Keeps(record); };
  }
  if (options_.process_names != "recorded") {
    options.rename_process = [this](std::string_view name) { return RenameProcess(name); };
  }
  return options;
}

Status CaptureSession::CheckClocks() {
  const ClockReading now = ReadClocks();
  const std::vector<proto::Mark> marks = clocks_.OnReading(now);
  for (const proto::Mark& mark : marks) RETURN_IF_ERROR(file_->WriteMark(mark));
  if (marks.empty() && now.monotonic_ns < next_anchor_ns_) return OkStatus();
  next_anchor_ns_ = now.monotonic_ns + kAnchorIntervalNs;
  return file_->WriteAnchor(now.anchor());
}

void CaptureSession::CheckOverruns() {
  const Result<uint64_t> lost = source_->KernelLost();
  if (!lost.ok() || *lost <= kernel_lost_) return;
  kernel_lost_ = *lost;
  const Result<bool> grown = source_->Grow(options_.buffer_limit_bytes);
  if (grown.ok() && *grown) {
    news_.push_back("events were lost; buffers grown to " +
                    FormatBytes(source_->buffer_bytes_per_cpu()) + " a CPU");
  }
}

void CaptureSession::CheckDevices() {
  const int64_t now_ns = Clock::Monotonic()->NowNs();
  for (size_t i = 0; i < devices_.size(); ++i) {
    if (!present_[i]) continue;
    std::optional<proto::LossReason> ended = source_->Ended(devices_[i]);
    if (!ended && !options_.sysfs.IsPresent(devices_[i])) ended = proto::DEVICE_REMOVED;
    if (!ended) continue;
    present_[i] = false;
    proto::Loss loss;
    loss.set_reason(*ended);
    loss.set_device(devices_[i].dev);
    // At some moment since the last look.
    loss.set_from_ns(devices_checked_ns_);
    loss.set_detail(devices_[i].description.name() +
                    (*ended == proto::TRACING_ENDED
                         ? " is recorded no more: somebody has ended its tracing (blktrace -k)"
                         : " is gone"));
    pipeline_->OnLoss(loss);
    news_.push_back(loss.detail());
    // At the end none comes under its number any more; the source has stopped, and what it told
    // last is still to be written as this disk's.
    if (!finished_) gone_.push_back({devices_[i], now_ns});
  }
  devices_checked_ns_ = now_ns;
}

void CaptureSession::RemoveGone(bool all) {
  if (gone_.empty()) return;  // at nearly every turn
  const int64_t now_ns = Clock::Monotonic()->NowNs();
  std::erase_if(gone_, [&](const Gone& one) {
    if (!all && now_ns - one.noticed_ns < options_.check_interval_ns &&
        !options_.sysfs.HasNumber(one.disk.dev)) {
      return false;
    }
    source_->Remove(one.disk);
    pipeline_->RemoveDevice(one.disk.dev);
    return true;
  });
}

void CaptureSession::LookForDisks() {
  std::string census = options_.sysfs.Census();
  if (census == census_) return;
  census_ = std::move(census);
  ShowLayers();
  if (!options_.find_disks) return;
  arrived_.clear();
  const Result<std::vector<Disk>> found = options_.find_disks();
  if (!found.ok()) return;  // none is there now
  for (const Disk& disk : *found) {
    bool known = false;
    for (size_t i = 0; i < devices_.size(); ++i) {
      known = known || (present_[i] && devices_[i].dev == disk.dev);
    }
    if (!known) arrived_.push_back(disk);
  }
  arrived_ns_ = Clock::Monotonic()->NowNs();
}

void CaptureSession::ShowLayers() {
  const std::vector<Layer> layers = options_.sysfs.LayersOn(devices_);
  source_->SetLayers(layers);
  pipeline_->SetLayers(layers);
}

bool CaptureSession::WantsNewFile() const {
  return !arrived_.empty() &&
         Clock::Monotonic()->NowNs() - arrived_ns_ >= options_.check_interval_ns;
}

std::vector<Disk> CaptureSession::AddArrived() {
  RemoveGone(/*all=*/true);
  std::vector<Disk> added;
  for (const Disk& disk : std::exchange(arrived_, {})) {
    const Status status = source_->Add(disk);
    if (status.ok()) {
      added.push_back(disk);
    } else {
      news_.push_back(disk.description.name() +
                      " has come and is not recorded: " + status.message());
    }
  }
  return added;
}

bool CaptureSession::CheckWorld() {
  CheckDevices();
  LookForDisks();
  CheckOverruns();
  TakeFinished();
  SetOwnPids();
  if (file_->paused() != was_paused_) {
    was_paused_ = file_->paused();
    news_.push_back(was_paused_ ? "the disk of the trace is full: waiting for space, I/O is lost"
                                : "there is space for the trace again");
  }
  return options_.waits_for_disks || !arrived_.empty() ||
         std::find(present_.begin(), present_.end(), true) != present_.end();
}

Result<bool> CaptureSession::Turn(int timeout_ms) {
  ASSIGN_OR_RETURN(bool more, source_->Poll(timeout_ms, pipeline_.get()));
  RETURN_IF_ERROR(pipeline_->status());
  RemoveGone(/*all=*/false);
  RETURN_IF_ERROR(CheckClocks());
  const int64_t now_ns = Clock::Monotonic()->NowNs();
  if (now_ns >= next_tick_ns_) {
    next_tick_ns_ = now_ns + options_.crash_window_ns * 2 / 5;
    RETURN_IF_ERROR(file_->Tick());
  }
  if (now_ns >= next_check_ns_) {
    next_check_ns_ = now_ns + options_.check_interval_ns;
    more = CheckWorld() && more;
  }
  return more;
}

void CaptureSession::AddToLostBefore(const LossTally& of_file) {
  lost_before_ += of_file.lost_events();
  lost_before_is_lower_bound_ |= of_file.is_lower_bound();
}

void CaptureSession::TakeFinished() {
  for (const FileFinisher::Finished& one : finisher_.Take()) {
    lost_before_ += one.more_lost;
    if (one.status.ok()) {
      ++files_finished_;
      news_.push_back("finished " + one.path);
    } else {
      news_.push_back("not finished: " + one.status.message());
    }
  }
}

Status CaptureSession::Rotate(const std::string& next_path) {
  if (!finisher_.has_room()) {
    return Status(StatusCode::kUnavailable, "the disk is still busy with the traces before");
  }
  const std::vector<Disk> added = AddArrived();
  for (const Disk& disk : added) {
    devices_.push_back(disk);
    present_.push_back(true);
  }
  Result<std::unique_ptr<RecordingFile>> old = Open(next_path);
  if (!old.ok()) {
    for (const Disk& disk : added) source_->Remove(disk);
    source_->SetOwnPids(own_pids_);  // a thread that wrote a file that is none has marked itself
    devices_.resize(devices_.size() - added.size());
    present_.resize(devices_.size());
    arrived_ = added;
    arrived_ns_ = Clock::Monotonic()->NowNs();
    return old.status();
  }
  proto::Summary summary;
  pipeline_->FillSummary(&summary);
  *summary.mutable_end() = ReadClocks().anchor();
  pipeline_->SetWriter(file_.get());
  for (const Disk& disk : added) {
    pipeline_->AddDevice(disk);
    proto::Mark mark;
    mark.set_kind(proto::DEVICE_ADDED);
    mark.set_at_ns(arrived_ns_);
    mark.set_detail(disk.description.name() + " has come");
    news_.push_back(mark.detail() + ": recorded from here on");
    RETURN_IF_ERROR(file_->WriteMark(mark));
  }
  AddToLostBefore((*old)->loss_tally());
  finisher_.Give(*std::move(old), summary);
  SetOwnPids();
  if (!added.empty()) ShowLayers();
  return OkStatus();
}

Status CaptureSession::Finish() {
  if (finished_) return OkStatus();
  finished_ = true;
  const Status stopped = source_->Stop(pipeline_.get());
  CheckDevices();  // one may have gone since the last look
  const Status delivered = pipeline_->Finish();
  proto::Summary summary;
  pipeline_->FillSummary(&summary);
  *summary.mutable_end() = ReadClocks().anchor();
  Status closed = file_->Finish(summary);
  AddToLostBefore(file_->loss_tally());
  // Now that nothing is recorded any more: it reads and writes the whole file.
  if (closed.ok()) {
    ++files_finished_;
    file_->Compact();
  }
  finisher_.WaitForAll();
  TakeFinished();
  RETURN_IF_ERROR(stopped);
  RETURN_IF_ERROR(delivered);
  return closed;
}

LiveFigures CaptureSession::Figures(bool begin_interval) {
  LiveFigures figures;
  const int64_t now_ns = Clock::Monotonic()->NowNs();
  counter_.Fill(now_ns, begin_interval, &figures);
  figures.elapsed_ns = now_ns - start_.monotonic_ns;
  figures.lost_events = lost_before_ + (finished_ ? 0 : file_->loss_tally().lost_events());
  figures.lost_events_is_lower_bound =
      lost_before_is_lower_bound_ || file_->loss_tally().is_lower_bound();
  const CaptureCounts counts = pipeline_->counts();
  figures.own_excluded = counts.own_excluded;
  figures.filtered = counts.filtered;
  figures.file_bytes = file_->bytes_written();
  figures.files_finished = files_finished_;
  figures.buffer_bytes_per_cpu = source_->buffer_bytes_per_cpu();
  figures.cpu_ns = ProcessCpuNs();
  figures.paused = file_->paused();
  return figures;
}

std::vector<std::string> CaptureSession::TakeNews() { return std::exchange(news_, {}); }

}  // namespace blktape
