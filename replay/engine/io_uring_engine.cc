#include "replay/engine/io_uring_engine.h"

#include <liburing.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "replay/engine/discard_ring.h"
#include "replay/engine/kernel_engine.h"
#include "replay/engine/nowait.h"
#include "replay/engine/poll_limits.h"
#include "replay/engine/worker_cpus.h"

namespace blktape {
namespace {

// user_data of the read on the pool's eventfd.
constexpr uint64_t kWakeData = ~0ull;
// user_data of a zero-length read.
constexpr uint64_t kEmptyReadData = kWakeData - 1;
// The kernel registers at most 1 GiB per buffer.
constexpr size_t kMaxRegisteredBytes = 1ull << 30;
constexpr uint32_t kSubmissionThreadIdleMs = 2000;

class IoUringEngine : public KernelEngine {
 public:
  explicit IoUringEngine(const EngineOptions& options)
      : KernelEngine(options),
        arena_(options.arena),
        submission_thread_(options.submission_thread),
        polled_(options.polled_completion),
        discards_(DiscardRule::Of(options.targets)) {}

  ~IoUringEngine() override { CloseRing(); }

  void Close() override { CloseRing(); }

  std::string_view name() const override { return "io_uring"; }
  std::string mode() const override;

  Status Open();

 protected:
  Status Attach() override;
  void Issue(uint32_t slot, const EngineStep& step) override;
  Status Push() override;
  Status Collect() override;
  Status Wait(int64_t wait_ns, bool pool_busy) override;
  Status IssueEmptyRead(uint32_t target_index) override;
  bool polls() const override { return polled_; }

 private:
  void CloseRing() {
    if (!open_) return;
    open_ = false;
    DrainForClose();
    // The kernel releases a closed ring later, in a worker; until then the targets would stay open
    // and claimed.
    if (files_registered_) (void)io_uring_unregister_files(&ring_);
    io_uring_queue_exit(&ring_);
  }
  Status Setup();
  void RegisterFiles();
  void RegisterArena();
  Status ProvePolling();
  io_uring_sqe* NextEntry();
  // The registered buffer that holds [buffer, buffer + bytes), or -1.
  int BufferIndex(const std::byte* buffer, uint64_t bytes) const;
  void PrepareTransfer(io_uring_sqe* entry, const EngineStep& step, int fd) const;
  void Answer(uint32_t slot, int32_t result);

  const std::span<std::byte> arena_;
  const bool submission_thread_;
  const bool polled_;
  DiscardRule discards_;
  io_uring ring_{};
  bool open_ = false;
  uint32_t setup_flags_ = 0;
  bool files_registered_ = false;
  bool arena_registered_ = false;
  bool wake_armed_ = false;
  std::vector<bool> inline_;            // by target
  std::vector<uint64_t> inline_bytes_;  // by target: a larger request would be split, and goes to a
                                        // worker
  std::vector<PollLimits> poll_limits_;  // by target, if completions are polled
  Status failure_;                       // set when the submission queue stays full
};

// Tries the flags that save work first; an older kernel answers EINVAL to unknown flags.
Status IoUringEngine::Setup() {
  const uint32_t entries = depth() + 1;
  std::vector<uint32_t> attempts;
  const uint32_t common = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP |
                          (polled_ ? IORING_SETUP_IOPOLL : 0u) |
                          (submission_thread_ ? IORING_SETUP_SQPOLL : 0u);
  if (!submission_thread_) {
    // Created disabled: the thread that enables the ring in Attach becomes its single issuer.
    attempts.push_back(common | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                       IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL |
                       IORING_SETUP_R_DISABLED);
    attempts.push_back(common | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
                       IORING_SETUP_SUBMIT_ALL);
  }
  attempts.push_back(common);
  int outcome = -EINVAL;
  for (const uint32_t flags : attempts) {
    io_uring_params params{};
    params.flags = flags;
    params.cq_entries = 2 * entries;
    params.sq_thread_idle = kSubmissionThreadIdleMs;
    outcome = io_uring_queue_init_params(entries, &ring_, &params);
    setup_flags_ = flags;
    if (outcome != -EINVAL) break;
  }
  if (outcome == 0) {
    open_ = true;
    return OkStatus();
  }
  const std::string reason = std::string("io_uring: ") + std::strerror(-outcome);
  if (outcome == -EPERM) {
    return Status(StatusCode::kUnavailable,
                  reason +
                      "; this machine forbids it\n"
                      "  try:  --engine libaio, or sysctl kernel.io_uring_disabled=0");
  }
  return Status(outcome == -ENOMEM ? StatusCode::kResourceExhausted : StatusCode::kUnavailable,
                reason + "\n  try:  --engine libaio");
}

void IoUringEngine::RegisterFiles() {
  std::vector<int> fds;
  for (const Target* target : targets()) fds.push_back(target->fd());
  files_registered_ =
      !fds.empty() &&
      io_uring_register_files(&ring_, fds.data(), static_cast<unsigned>(fds.size())) == 0;
}

// The kernel refuses this if the arena exceeds RLIMIT_MEMLOCK; requests work without registration.
void IoUringEngine::RegisterArena() {
  std::vector<iovec> pieces;
  for (size_t at = 0; at < arena_.size(); at += kMaxRegisteredBytes) {
    pieces.push_back({arena_.data() + at, std::min(kMaxRegisteredBytes, arena_.size() - at)});
  }
  arena_registered_ =
      !pieces.empty() &&
      io_uring_register_buffers(&ring_, pieces.data(), static_cast<unsigned>(pieces.size())) == 0;
}

Status IoUringEngine::Open() {
  RETURN_IF_ERROR(Setup());
  RegisterFiles();
  RegisterArena();
  for (const Target* target : targets()) {
    inline_.push_back(IssuesWithoutBlocking(target->fd()));
    const proto::Device& device = target->description();
    inline_bytes_.push_back(target->is_block_device() && device.max_sectors_kb() > 0
                                ? uint64_t{1024} * device.max_sectors_kb()
                                : UINT64_MAX);
  }
  return polled_ ? ProvePolling() : OkStatus();
}

// Before 6.11 a queue without polling accepts polled requests and completes them by interrupt;
// newer kernels answer EOPNOTSUPP. So first the queue's attributes are checked, then a read on a
// separate ring.
Status IoUringEngine::ProvePolling() {
  for (const Target* target : targets()) {
    poll_limits_.push_back(PollLimitsOf(*target));
    const auto refuse = [target](const std::string& why) {
      return Status(StatusCode::kUnavailable,
                    target->path() + ": polled completion: " + why +
                        "\n  try:  without it; NVMe drives need the module parameter "
                        "nvme.poll_queues");
    };
    if (!poll_limits_.back().has_queues) return refuse("the driver has no poll queues");
    io_uring ring{};
    if (io_uring_queue_init(1, &ring, IORING_SETUP_IOPOLL) != 0) continue;
    alignas(4096) static std::byte page[4096];
    io_uring_sqe* const entry = io_uring_get_sqe(&ring);
    io_uring_prep_read(entry, target->fd(), page, sizeof page, 0);
    io_uring_cqe* completion = nullptr;
    int result = io_uring_submit(&ring);
    if (result >= 0) result = io_uring_wait_cqe(&ring, &completion);
    if (result >= 0) result = completion->res;
    io_uring_queue_exit(&ring);
    if (result >= 0 || result == -EAGAIN) continue;
    return refuse(std::strerror(-result));
  }
  return OkStatus();
}

Status IoUringEngine::Attach() {
  if ((setup_flags_ & IORING_SETUP_R_DISABLED) != 0) {
    // A direct system call: Debian 12's liburing declares io_uring_enable_rings but does not export
    // it.
    if (syscall(__NR_io_uring_register, ring_.ring_fd, IORING_REGISTER_ENABLE_RINGS, nullptr, 0) <
        0) {
      return ErrnoStatus(errno, "io_uring: enabling the ring");
    }
  }
  PlaceKernelWorkers(&ring_);
  return OkStatus();
}

std::string IoUringEngine::mode() const {
  std::string text = files_registered_ ? "registered files" : "plain files";
  text += arena_registered_ ? ", registered buffers" : ", plain buffers";
  if (submission_thread_) text += ", submission thread";
  if (polled_) text += ", polled completion";
  if ((setup_flags_ & IORING_SETUP_SINGLE_ISSUER) != 0) text += ", single issuer";
  for (size_t i = 0; i < inline_.size(); ++i) {
    const Target& target = *targets()[i];
    text += inline_.size() > 1 ? "; " + target.path() + ": " : ", ";
    text += inline_[i] ? "inline" : "punted to kernel workers (the driver may block)";
    if (!target.direct()) text += ", page cache";
  }
  return text;
}

io_uring_sqe* IoUringEngine::NextEntry() {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  while (entry == nullptr && failure_.ok()) {
    // Happens only when a submission thread lags; otherwise there is an entry for each slot.
    if (submission_thread_) {
      io_uring_submit(&ring_);
      io_uring_sqring_wait(&ring_);
    } else {
      failure_ = Push();
    }
    entry = io_uring_get_sqe(&ring_);
  }
  return entry;
}

int IoUringEngine::BufferIndex(const std::byte* buffer, uint64_t bytes) const {
  if (!arena_registered_ || buffer < arena_.data() ||
      buffer + bytes > arena_.data() + arena_.size() || bytes == 0) {
    return -1;
  }
  const size_t first = static_cast<size_t>(buffer - arena_.data()) / kMaxRegisteredBytes;
  const size_t last =
      (static_cast<size_t>(buffer - arena_.data()) + bytes - 1) / kMaxRegisteredBytes;
  return first == last ? static_cast<int>(first) : -1;
}

void IoUringEngine::PrepareTransfer(io_uring_sqe* entry, const EngineStep& step, int fd) const {
  const auto bytes = static_cast<unsigned>(step.bytes);
  const int index = BufferIndex(step.buffer, step.bytes);
  if (step.op == Op::kRead && index >= 0) {
    io_uring_prep_read_fixed(entry, fd, step.buffer, bytes, step.offset_bytes, index);
  } else if (step.op == Op::kRead) {
    io_uring_prep_read(entry, fd, step.buffer, bytes, step.offset_bytes);
  } else if (index >= 0) {
    io_uring_prep_write_fixed(entry, fd, step.buffer, bytes, step.offset_bytes, index);
  } else {
    io_uring_prep_write(entry, fd, step.buffer, bytes, step.offset_bytes);
  }
  if (step.durable) entry->rw_flags = RWF_DSYNC;
}

void IoUringEngine::Issue(uint32_t slot, const EngineStep& step) {
  const bool transfer = step.op == Op::kRead || step.op == Op::kWrite;
  const bool block = target(slot).is_block_device();
  const uint32_t index = progress(slot).request().target;
  // A ring with polled completion accepts only reads and writes that can be polled.
  const bool takes =
      polled_ ? transfer && poll_limits_[index].Polls(step.offset_bytes, step.bytes)
              : transfer || ((step.op == Op::kFlush || step.op == Op::kWriteZeroes ||
                              (step.op == Op::kDiscard && (!block || discards_.by_command()))));
  if (!takes) return HandToPool(slot, step);
  io_uring_sqe* const entry = NextEntry();
  if (entry == nullptr) return;  // failure_ holds the reason
  const int fd = files_registered_ ? static_cast<int>(index) : target(slot).fd();
  switch (step.op) {
    case Op::kFlush:
      io_uring_prep_fsync(entry, fd, IORING_FSYNC_DATASYNC);
      progress(slot).MarkPunted();
      break;
    case Op::kDiscard:
      if (block) {
        const bool by_worker = discards_.NeedsWorker(index);
        PrepareDiscard(entry, fd, step.offset_bytes, step.bytes, by_worker);
        if (by_worker) progress(slot).MarkPunted();
        discards_.Sent();
      } else {
        io_uring_prep_fallocate(entry, fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                static_cast<off_t>(step.offset_bytes),
                                static_cast<off_t>(step.bytes));
        progress(slot).MarkPunted();
      }
      break;
    case Op::kWriteZeroes:
      io_uring_prep_fallocate(entry, fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
                              static_cast<off_t>(step.offset_bytes),
                              static_cast<off_t>(step.bytes));
      progress(slot).MarkPunted();
      break;
    default:
      PrepareTransfer(entry, step, fd);
      if (!inline_[index] || step.bytes > inline_bytes_[index]) progress(slot).MarkPunted();
  }
  if (files_registered_) entry->flags |= IOSQE_FIXED_FILE;
  io_uring_sqe_set_data64(entry, slot);
}

Status IoUringEngine::Push() {
  RETURN_IF_ERROR(failure_);
  while (io_uring_sq_ready(&ring_) > 0) {
    const int outcome = io_uring_submit(&ring_);
    if (outcome > 0 || outcome == -EINTR) {
      // The submission thread consumes the entries at its own pace.
      if (submission_thread_) break;
      continue;
    }
    if (outcome != -EAGAIN && outcome != -EBUSY && outcome != 0) {
      return ErrnoStatus(-outcome, "io_uring: submission");
    }
    // The kernel has no memory for requests, or completions must be reaped first.
    (void)io_uring_get_events(&ring_);
    RETURN_IF_ERROR(Collect());
  }
  return OkStatus();
}

void IoUringEngine::Answer(uint32_t slot, int32_t result) {
  const EngineStep step = progress(slot).Next();
  const bool discard = step.op == Op::kDiscard && target(slot).is_block_device();
  if (discard && discards_.Refused(result)) return HandToPool(slot, step);
  Finish(slot, result);
}

Status IoUringEngine::Collect() {
  if (polled_) (void)io_uring_get_events(&ring_);
  constexpr unsigned kBatch = 64;
  io_uring_cqe* completions[kBatch];
  while (true) {
    const unsigned count = io_uring_peek_batch_cqe(&ring_, completions, kBatch);
    if (count == 0) return failure_;
    StampNow();
    std::array<std::pair<uint64_t, int32_t>, kBatch> answers;
    for (unsigned i = 0; i < count; ++i) {
      answers[i] = {completions[i]->user_data, completions[i]->res};
    }
    io_uring_cq_advance(&ring_, count);
    for (unsigned i = 0; i < count; ++i) {
      if (answers[i].first == kWakeData) {
        wake_armed_ = false;
      } else if (answers[i].first != kEmptyReadData) {
        Answer(static_cast<uint32_t>(answers[i].first), answers[i].second);
      }
    }
    if (count < kBatch) return failure_;
  }
}

Status IoUringEngine::Wait(int64_t wait_ns, bool pool_busy) {
  if (pool_busy && !wake_armed_) {
    io_uring_sqe* const entry = NextEntry();
    if (entry == nullptr) return failure_;
    io_uring_prep_poll_add(entry, pool_event_fd(), POLLIN);
    io_uring_sqe_set_data64(entry, kWakeData);
    wake_armed_ = true;
    RETURN_IF_ERROR(Push());
  }
  __kernel_timespec timeout{.tv_sec = wait_ns / kNanosPerSecond,
                            .tv_nsec = wait_ns % kNanosPerSecond};
  io_uring_cqe* completion = nullptr;
  const int outcome = io_uring_wait_cqes(&ring_, &completion, 1, &timeout, nullptr);
  if (outcome < 0 && outcome != -ETIME && outcome != -EINTR && outcome != -EAGAIN &&
      outcome != -EBUSY) {
    return ErrnoStatus(-outcome, "io_uring: waiting for completions");
  }
  return OkStatus();
}

Status IoUringEngine::IssueEmptyRead(uint32_t target_index) {
  if (!inline_[target_index] || submission_thread_ || polled_) return OkStatus();
  io_uring_sqe* const entry = NextEntry();
  if (entry == nullptr) return failure_;
  const int fd = files_registered_ ? static_cast<int>(target_index) : targets()[target_index]->fd();
  if (arena_registered_) {
    io_uring_prep_read_fixed(entry, fd, arena_.data(), 0, 0, 0);
  } else {
    io_uring_prep_read(entry, fd, nullptr, 0, 0);
  }
  if (files_registered_) entry->flags |= IOSQE_FIXED_FILE;
  io_uring_sqe_set_data64(entry, kEmptyReadData);
  return Push();
}

}  // namespace

Result<std::unique_ptr<Engine>> MakeIoUringEngine(const EngineOptions& options) {
  auto engine = std::make_unique<IoUringEngine>(options);
  RETURN_IF_ERROR(engine->Open());
  return std::unique_ptr<Engine>(std::move(engine));
}

}  // namespace blktape
