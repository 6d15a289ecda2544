#include "capture/blktrace/blktrace_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/process.h"
#include "base/units.h"
#include "capture/blktrace/blktrace_abi.h"
#include "capture/source/forwarding_sink.h"
#include "capture/source/sink_buffer.h"
#include "capture/source/source_errors.h"

namespace blktape {
namespace {

namespace fs = std::filesystem;

// As in tracefs: an event is stamped a moment before it can be read.
constexpr int64_t kCommitMarginNs = 20 * kNanosPerMilli;
// A relay is a ring of this many pieces; one that is full is lost as a whole to the writer.
constexpr uint32_t kPieces = 4;
constexpr size_t kReadBytes = 128 * 1024;
// Of one relay, before the others get their turn.
constexpr uint64_t kTurnBytes = 4 * 1024 * 1024;
// All categories: they are OR-matched, and a split has none except its direction, so selecting
// stages would lose it.
constexpr uint16_t kAllV1 = 0xffff;
constexpr uint64_t kAllV2 = (uint64_t{1} << 32) - 1;
// What threads of ours leave as a message, before the id they know themselves by.
constexpr std::string_view kThreadMark = "blktape thread ";
// Since it was left, a mark may still lie in a relay that is read after another one with I/O of its
// thread.
constexpr int64_t kMarkUnderWayNs = kNanosPerSecond;

// The kernel reserves room in a relay and then writes the event, with interrupts held off. Whoever
// reads meanwhile on another CPU takes what is not written yet, which is long where a virtual CPU
// loses its core. On the relay's own CPU nobody is in the midst of it.
class CpuVisitor {
 public:
  CpuVisitor() { known_ = sched_getaffinity(0, sizeof home_, &home_) == 0; }
  ~CpuVisitor() {
    if (moved_) (void)sched_setaffinity(0, sizeof home_, &home_);
  }
  CpuVisitor(const CpuVisitor&) = delete;
  CpuVisitor& operator=(const CpuVisitor&) = delete;

  // The thread stays on its CPU if it may not move there, or if that CPU is offline and writes
  // nothing.
  void GoTo(uint32_t cpu) {
    if (!known_ || cpu >= CPU_SETSIZE) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) == 0) moved_ = true;
  }

 private:
  cpu_set_t home_;
  bool known_ = false;
  bool moved_ = false;
};

}  // namespace

// Between a decoder and the session: a gap in the sequence numbers is events that the relay had no
// room for, and the kernel's own counter tells of the same.
//
// __blk_add_trace asks which CPU it is on before it keeps interrupts away, and since Linux 7.0 may
// be moved in between: such an event lies in the relay of one CPU with the name and the sequence
// number of another. So what is in order is a relay, whatever its events say; and a gap that the
// counter does not know is no loss.
class BlktraceSource::Translator : public ForwardingSink {
 public:
  Translator(BlktraceSource* source, TracedDisk* disk, const Relay& relay, CaptureSink* sink)
      : ForwardingSink(sink), source_(source), disk_(disk), stream_(relay.stream) {}

  void OnEvent(uint32_t /*stream*/, const BlockEvent& event) override {
    next().OnEvent(stream_, event);
  }
  void OnLoss(const proto::Loss& loss) override {
    if (loss.reason() != proto::SEQUENCE_GAP) return next().OnLoss(loss);
    const uint64_t count = disk_->loss.OnClaim(loss.count(), source_->ReadDropped(*disk_));
    if (count == 0) return;
    proto::Loss drop = loss;
    drop.set_reason(proto::RELAY_DROP);
    drop.set_count(count);
    drop.set_device(disk_->device.dev);
    next().OnLoss(drop);
  }
  // The session's own anchors are better: these are one per disk, at its start.
  void OnAnchor(const proto::ClockAnchor& /*anchor*/) override {}

 private:
  BlktraceSource* source_;
  TracedDisk* disk_;
  uint32_t stream_;
};

// Puts our own ids to what our threads have done, in a PID namespace.
class BlktraceSource::OwnNames : public ForwardingSink {
 public:
  OwnNames(const BlktraceSource* source, CaptureSink* sink)
      : ForwardingSink(sink), source_(source) {}

  void OnEvent(uint32_t stream, const BlockEvent& event) override {
    const auto own = source_->own_pids_.find(event.pid);
    if (own == source_->own_pids_.end()) return next().OnEvent(stream, event);
    BlockEvent named = event;
    named.pid = OwnId(own->second);
    next().OnEvent(stream, named);
  }

 private:
  const BlktraceSource* source_;
};

BlktraceSource::BlktraceSource(std::vector<Disk> devices, const BlktraceOptions& options)
    : devices_(std::move(devices)),
      buffer_bytes_per_cpu_(options.buffer_bytes_per_cpu != 0 ? options.buffer_bytes_per_cpu
                                                              : PlanBuffersHere().bytes_per_cpu),
      state_folder_(options.state_folder),
      buffer_(kReadBytes) {}

BlktraceSource::~BlktraceSource() {
  for (TracedDisk& disk : disks_) TearDown(&disk);
}

Status BlktraceSource::Start() {
  Result<KernelFs> debugfs = KernelFs::Debugfs();
  if (!debugfs.ok()) return ExplainSourceFailure(debugfs.status(), name());
  debugfs_ = std::move(debugfs).value();
  for (const Disk& device : devices_) {
    TracedDisk disk;
    disk.device = device;
    disks_.push_back(std::move(disk));
  }
  for (size_t i = 0; i < disks_.size(); ++i) {
    const Status started = StartDisk(&disks_[i], static_cast<uint32_t>(i));
    if (started.ok()) continue;
    for (TracedDisk& disk : disks_) TearDown(&disk);
    disks_.clear();
    messages_.clear();
    return ExplainSourceFailure(started, name());
  }
  return OkStatus();
}

Status BlktraceSource::StartDisk(TracedDisk* disk, uint32_t index) {
  const std::string path = "/dev/" + disk->device.description.name();
  disk->file.reset(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!disk->file) return ErrnoStatus(errno, path);
  ASSIGN_OR_RETURN(const std::string folder, SetUp(disk));
  RETURN_IF_ERROR(OpenRelays(disk, index, debugfs_->folder() + "/block/" + folder));
  disk->last_drop_check_ns = Clock::Monotonic()->NowNs();
  if (LocalPidNamespace()) {
    const std::string messages = debugfs_->folder() + "/block/" + folder + "/msg";
    messages_.emplace_back(open(messages.c_str(), O_WRONLY | O_CLOEXEC));
  }
  if (ioctl(disk->file.get(), kBlktraceStart) != 0) return ErrnoStatus(errno, "BLKTRACESTART");
  return OkStatus();
}

Result<std::string> BlktraceSource::SetUp(TracedDisk* disk) {
  const auto piece_bytes =
      static_cast<uint32_t>(std::max<uint64_t>(buffer_bytes_per_cpu_ / kPieces, 4096));
  const std::string device = disk->device.description.name();
  bool removed_dead = false;
  while (true) {
    std::string folder;
    BlktraceSetup2 second{};
    second.act_mask = kAllV2;
    second.buf_size = piece_bytes;
    second.buf_nr = kPieces;
    int err = 0;
    if (ioctl(disk->file.get(), kBlktraceSetup2, &second) == 0) {
      folder = second.name;
    } else if (errno == ENOTTY || errno == EINVAL) {
      blk_user_trace_setup first{};
      first.act_mask = kAllV1;
      first.buf_size = piece_bytes;
      first.buf_nr = kPieces;
      if (ioctl(disk->file.get(), kBlktraceSetup, &first) == 0) {
        folder = first.name;
      } else {
        err = errno;
      }
    } else {
      err = errno;
    }
    if (err == 0) {
      disk->set_up = true;
      mkdir(state_folder_.c_str(), 0755);
      disk->state_path = state_folder_ + "/blktrace-" + device;
      unlink(disk->state_path.c_str());
      // Without it, tracing left by a crash is not recognised as ours: this only costs a message.
      Result<std::unique_ptr<ByteSink>> note = CreateFile(disk->state_path);
      if (note.ok()) {
        const std::string owner = OwnPidAndStart();
        (void)(*note)->Write(std::as_bytes(std::span(owner)));
      }
      return folder;
    }
    if (err == EBUSY && !removed_dead && RemoveDead(disk)) {
      removed_dead = true;
      continue;
    }
    if (err == EBUSY) {
      return Status(StatusCode::kFailedPrecondition,
                    device +
                        " is being traced by another blktrace, and a disk takes one only"
                        "\n  try:  --source=tracefs, or end it: blktrace -k /dev/" +
                        device);
    }
    if (err == ENOTTY) {
      return Status(StatusCode::kUnavailable, device + ": this kernel has no blktrace");
    }
    return ErrnoStatus(err, "BLKTRACESETUP on " + device);
  }
}

bool BlktraceSource::RemoveDead(TracedDisk* disk) const {
  const std::string path = state_folder_ + "/blktrace-" + disk->device.description.name();
  const Result<std::string> owner = ReadAttribute(path);
  if (!owner.ok() || ProcessLives(*owner)) return false;
  ioctl(disk->file.get(), kBlktraceStop);
  ioctl(disk->file.get(), kBlktraceTeardown);
  unlink(path.c_str());
  return true;
}

Status BlktraceSource::OpenRelays(TracedDisk* disk, uint32_t index, const std::string& folder) {
  const std::string dropped = folder + "/dropped";
  disk->dropped.reset(open(dropped.c_str(), O_RDONLY | O_CLOEXEC));
  if (!disk->dropped) return ErrnoStatus(errno, dropped);
  for (uint32_t cpu = 0; cpu < kBlktraceStreamsPerFile; ++cpu) {
    const std::string path = folder + fmt::format("/trace{}", cpu);
    Relay relay;
    relay.file.reset(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!relay.file && errno == ENOENT) {
      // Numbers have holes only where a CPU is off.
      if (cpu >= static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_CONF))) break;
      continue;
    }
    if (!relay.file) return ErrnoStatus(errno, path);
    relay.cpu = cpu;
    relay.stream = index * kBlktraceStreamsPerFile + cpu;
    relay.decoder = std::make_unique<BlktraceDecoder>(
        disk->device.description.name() + fmt::format(" relay of CPU {}", cpu),
        index * kBlktraceStreamsPerFile);
    // Before Linux 5.10 or so the kernel does not say who left it.
    relay.decoder->ListenToMessages([this](uint32_t pid, std::string_view text) {
      uint32_t own = 0;
      if (pid == 0 || !text.starts_with(kThreadMark)) return;
      text.remove_prefix(kThreadMark.size());
      const auto parsed = std::from_chars(text.data(), text.data() + text.size(), own);
      if (parsed.ec == std::errc() && !messages_.empty()) own_pids_[pid] = own;
    });
    disk->relays.push_back(std::move(relay));
  }
  if (disk->relays.empty()) {
    return Status(StatusCode::kUnavailable, folder + ": no relay files");
  }
  return OkStatus();
}

void BlktraceSource::NoteEnd(TracedDisk* disk) {
  if (!disk->set_up) return;
  // From here on, tracing set up on the disk belongs to another program.
  disk->set_up = false;
  unlink(disk->state_path.c_str());
  // A disk that is pulled has lost its size before its tracing ends.
  uint64_t bytes = 0;
  const bool here = ioctl(disk->file.get(), BLKGETSIZE64, &bytes) == 0 && bytes > 0;
  ended_[disk->device.dev] = here ? proto::TRACING_ENDED : proto::DEVICE_REMOVED;
}

std::optional<proto::LossReason> BlktraceSource::Ended(const Disk& device) const {
  const auto ended = ended_.find(device.dev);
  return ended == ended_.end() ? std::nullopt : std::optional(ended->second);
}

void BlktraceSource::SetOwnPids(const std::vector<uint32_t>& pids) {
  // What the kernel called one that has ended may be somebody else by now.
  std::erase_if(own_pids_, [&](const auto& one) {
    return std::find(pids.begin(), pids.end(), one.second) == pids.end();
  });
}

void BlktraceSource::MarkThread() {
  if (messages_.empty()) return;
  const std::string mark = fmt::format("{}{}", kThreadMark, gettid());
  // On each disk, as some may be gone.
  for (const UniqueFd& disk : messages_) (void)!write(disk.get(), mark.data(), mark.size());
  marked_ns_ = Clock::Monotonic()->NowNs();
}

void BlktraceSource::TearDown(TracedDisk* disk) {
  disk->relays.clear();
  disk->dropped.reset();
  if (disk->set_up) {
    ioctl(disk->file.get(), kBlktraceStop);
    ioctl(disk->file.get(), kBlktraceTeardown);
    unlink(disk->state_path.c_str());
    disk->set_up = false;
  }
  disk->file.reset();
}

Result<bool> BlktraceSource::ReadRelay(TracedDisk* disk, Relay* relay, uint64_t max_bytes,
                                       CaptureSink* sink) {
  if (!relay->file) return true;
  Translator translator(this, disk, *relay, sink);
  uint64_t total = 0;
  while (total < max_bytes) {
    const ssize_t count = read(relay->file.get(), buffer_.data(), buffer_.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return true;
      // The files in debugfs are gone.
      if (errno == EIO || errno == ENODEV) {
        relay->decoder->Finish(&translator);
        relay->file.reset();
        NoteEnd(disk);
        return true;
      }
      return ErrnoStatus(errno, "relay of " + disk->device.description.name());
    }
    if (count == 0) return true;
    total += static_cast<uint64_t>(count);
    relay->decoder->Decode(std::span(buffer_).first(static_cast<size_t>(count)), &translator);
  }
  return false;
}

uint64_t BlktraceSource::ReadDropped(const TracedDisk& disk) const {
  std::array<char, 32> text{};
  const ssize_t count = pread(disk.dropped.get(), text.data(), text.size(), 0);
  uint64_t dropped = 0;
  if (count > 0) std::from_chars(text.data(), text.data() + count, dropped);
  return dropped;
}

void BlktraceSource::ReportDropped(TracedDisk* disk, CaptureSink* sink) {
  const int64_t now_ns = Clock::Monotonic()->NowNs();
  const uint64_t rest = disk->loss.Rest(ReadDropped(*disk));
  if (rest > 0) {
    proto::Loss loss;
    loss.set_reason(proto::RELAY_DROP);
    loss.set_count(rest);
    loss.set_device(disk->device.dev);
    loss.set_from_ns(disk->last_drop_check_ns);
    loss.set_to_ns(now_ns);
    sink->OnLoss(loss);
  }
  disk->last_drop_check_ns = now_ns;
}

Status BlktraceSource::ReadAll(uint64_t max_bytes_each, CaptureSink* sink) {
  const int64_t now_ns = Clock::Monotonic()->NowNs();
  bool drained = true;
  if (messages_.empty()) {
    RETURN_IF_ERROR(ReadRelays(max_bytes_each, &drained, sink));
  } else {
    OwnNames named(this, sink);
    SinkBuffer held;
    const bool hold = now_ns - marked_ns_ < kMarkUnderWayNs;
    RETURN_IF_ERROR(
        ReadRelays(max_bytes_each, &drained, hold ? static_cast<CaptureSink*>(&held) : &named));
    held.Replay(&named);
  }
  for (TracedDisk& disk : disks_) ReportDropped(&disk, sink);
  // What an unfinished relay still holds may be of any age: the watermark waits for it.
  if (drained) sink->OnWatermark(now_ns - kCommitMarginNs);
  return OkStatus();
}

Status BlktraceSource::ReadRelays(uint64_t max_bytes_each, bool* drained, CaptureSink* sink) {
  CpuVisitor visitor;
  size_t most_relays = 0;
  for (const TracedDisk& disk : disks_) most_relays = std::max(most_relays, disk.relays.size());
  for (size_t i = 0; i < most_relays; ++i) {
    for (TracedDisk& disk : disks_) {
      if (i >= disk.relays.size()) continue;
      visitor.GoTo(disk.relays[i].cpu);
      ASSIGN_OR_RETURN(const bool empty, ReadRelay(&disk, &disk.relays[i], max_bytes_each, sink));
      *drained = *drained && empty;
    }
  }
  return OkStatus();
}

Result<bool> BlktraceSource::Poll(int timeout_ms, CaptureSink* sink) {
  std::vector<pollfd> waits;
  for (const TracedDisk& disk : disks_) {
    for (const Relay& relay : disk.relays) {
      if (relay.file) waits.push_back({relay.file.get(), POLLIN, 0});
    }
  }
  if (waits.empty()) return false;
  if (poll(waits.data(), waits.size(), timeout_ms) < 0 && errno != EINTR) {
    return ErrnoStatus(errno, "waiting for blktrace");
  }
  RETURN_IF_ERROR(ReadAll(kTurnBytes, sink));
  return true;
}

Status BlktraceSource::Stop(CaptureSink* sink) {
  std::vector<int> errors;  // by disk
  for (TracedDisk& disk : disks_) {
    errors.push_back(!disk.set_up || ioctl(disk.file.get(), kBlktraceStop) == 0 ? 0 : errno);
  }
  Status status = ReadAll(std::numeric_limits<uint64_t>::max(), sink);
  kernel_lost_ = 0;
  for (size_t i = 0; i < disks_.size(); ++i) {
    TracedDisk& disk = disks_[i];
    // The counter of a removed disk is gone.
    kernel_lost_ += std::max(ReadDropped(disk), disk.loss.reported());
    bool here = false;
    for (Relay& relay : disk.relays) {
      if (!relay.file) continue;
      here = true;
      Translator translator(this, &disk, relay, sink);
      relay.decoder->Finish(&translator);
    }
    // There is nothing to stop on a removed disk.
    if (here && errors[i] != 0 && status.ok()) {
      status = ErrnoStatus(errors[i], "BLKTRACESTOP on " + disk.device.description.name());
    }
  }
  for (TracedDisk& disk : disks_) TearDown(&disk);
  disks_.clear();
  return status;
}

Result<uint64_t> BlktraceSource::KernelLost() {
  if (disks_.empty()) return kernel_lost_;
  uint64_t lost = 0;
  for (const TracedDisk& disk : disks_) lost += ReadDropped(disk);
  return lost;
}

}  // namespace blktape
