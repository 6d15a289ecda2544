#include "replay/engine/libaio_engine.h"

#include <libaio.h>
#include <linux/fs.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "format/io_record.h"
#include "replay/engine/discard_ring.h"
#include "replay/engine/kernel_engine.h"

namespace blktape {
namespace {

// How long one wait takes when only the pool has work and the kernel cannot wait for the pool.
constexpr int64_t kPoolSliceNs = 100 * kNanosPerMicro;
// How long to pause when the kernel refuses a submission temporarily.
constexpr int64_t kRefusedNs = kNanosPerMilli;

timespec Timespec(int64_t ns) { return {ns / kNanosPerSecond, ns % kNanosPerSecond}; }

class LibaioEngine : public KernelEngine {
 public:
  explicit LibaioEngine(const EngineOptions& options)
      : KernelEngine(options),
        blocks_(options.depth + kOwnBlocks),
        events_(options.depth + kOwnBlocks),
        discards_(DiscardRing::Open(options.depth)),
        discard_rule_(DiscardRule::Of(options.targets)) {
    pending_.reserve(options.depth);
  }

  ~LibaioEngine() override {
    if (context_ == nullptr) return;
    DrainForClose();
    io_destroy(context_);
  }

  std::string_view name() const override { return "libaio"; }
  std::string mode() const override {
    std::string text = "issued by the calling thread";
    for (const Target* target : targets()) {
      if (!target->direct())
        text += "; " + target->path() + ": page cache, completes within submission";
    }
    return text;
  }

  Status Open() {
    const int outcome = io_setup(static_cast<int>(blocks_.size()), &context_);
    if (outcome == 0) return OkStatus();
    context_ = nullptr;
    const std::string reason = std::string("libaio: ") + std::strerror(-outcome);
    if (outcome == -EAGAIN) {
      return Status(StatusCode::kResourceExhausted,
                    reason +
                        ": fs.aio-max-nr is used up\n"
                        "  try:  sysctl fs.aio-max-nr=1048576, or --engine io_uring");
    }
    return Status(StatusCode::kUnavailable, reason + "\n  try:  --engine io_uring");
  }

 protected:
  Status Attach() override {
    if (discards_ != nullptr) discards_->Attach();
    return OkStatus();
  }

  void Issue(uint32_t slot, const EngineStep& step) override {
    iocb* const block = &blocks_[slot];
    const int fd = target(slot).fd();
    const auto offset = static_cast<long long>(step.offset_bytes);
    if (step.op == Op::kRead) {
      io_prep_pread(block, fd, step.buffer, step.bytes, offset);
    } else if (step.op == Op::kWrite) {
      io_prep_pwrite(block, fd, step.buffer, step.bytes, offset);
      if (step.durable) block->aio_rw_flags = RWF_DSYNC;
    } else if (step.op == Op::kDiscard && target(slot).is_block_device() && discards_ != nullptr &&
               discard_rule_.by_command()) {
      const bool by_worker = discard_rule_.NeedsWorker(progress(slot).request().target);
      if (by_worker) progress(slot).MarkPunted();
      discard_rule_.Sent();
      return discards_->Prepare(slot, fd, step.offset_bytes, step.bytes, by_worker);
    } else {
      // The kernel's own asynchronous flush, by a worker bound to the CPU that submits it, would
      // wait until the thread there sleeps.
      return HandToPool(slot, step);
    }
    pending_.push_back(block);
  }

  Status Push() override {
    size_t taken = 0;
    while (taken < pending_.size()) {
      const int outcome =
          io_submit(context_, static_cast<long>(pending_.size() - taken), pending_.data() + taken);
      if (outcome > 0) {
        taken += static_cast<size_t>(outcome);
        in_kernel_ += static_cast<size_t>(outcome);
        continue;
      }
      if (outcome == -EINTR) continue;
      if (outcome == 0 || outcome == -EAGAIN) {
        RETURN_IF_ERROR(TakeEvents(1, kRefusedNs));
        continue;
      }
      // Only the first block is refused: it alone has failed.
      iocb* const refused = pending_[taken++];
      StampNow();
      Finish(SlotOf(refused), outcome);
    }
    pending_.clear();
    return discards_ == nullptr ? OkStatus() : discards_->Push();
  }

  Status Collect() override {
    TakeDiscards();
    return TakeEvents(0, 0);
  }

  Status Wait(int64_t wait_ns, bool pool_busy) override {
    const bool discarding = discards_ != nullptr && discards_->in_flight() > 0;
    const bool unheard = (pool_busy && !Arm(kPoolWake, pool_event_fd())) ||
                         (discarding && !Arm(kDiscardWake, discards_->fd()));
    if (unheard) wait_ns = std::min(wait_ns, kPoolSliceNs);
    return TakeEvents(1, wait_ns);
  }

  Status IssueEmptyRead(uint32_t target_index) override {
    if (out_[kEmptyRead]) return OkStatus();
    io_prep_pread(&blocks_[depth() + kEmptyRead], targets()[target_index]->fd(), nullptr, 0, 0);
    (void)SubmitOwn(kEmptyRead);
    return OkStatus();
  }

 private:
  // Blocks after those of the slots: the poll that ends a wait, and the zero-length read.
  enum OwnBlock : uint32_t { kPoolWake, kDiscardWake, kEmptyRead, kOwnBlocks };

  // Whether the wait ends when `fd` becomes readable.
  bool Arm(OwnBlock wake, int fd) {
    if (out_[wake] || !wake_works_) return out_[wake];
    io_prep_poll(&blocks_[depth() + wake], fd, POLLIN);
    wake_works_ = SubmitOwn(wake);  // not before Linux 4.19
    return wake_works_;
  }

  bool SubmitOwn(OwnBlock own) {
    iocb* block = &blocks_[depth() + own];
    out_[own] = io_submit(context_, 1, &block) == 1;
    in_kernel_ += out_[own] ? 1 : 0;
    return out_[own];
  }

  void TakeDiscards() {
    if (discards_ == nullptr || discards_->in_flight() == 0) return;
    discard_answers_.clear();
    discards_->Collect(&discard_answers_);
    if (discard_answers_.empty()) return;
    StampNow();
    for (const DiscardRing::Answer& answer : discard_answers_) {
      if (discard_rule_.Refused(answer.result)) {
        HandToPool(answer.slot, progress(answer.slot).Next());
      } else {
        Finish(answer.slot, answer.result);
      }
    }
  }

  uint32_t SlotOf(const iocb* block) const { return static_cast<uint32_t>(block - blocks_.data()); }

  Status TakeEvents(long at_least, int64_t wait_ns) {
    if (in_kernel_ == 0) {
      if (wait_ns == 0) return OkStatus();
      const timespec pause = Timespec(std::min(wait_ns, kPoolSliceNs));
      nanosleep(&pause, nullptr);
      return OkStatus();
    }
    timespec timeout = Timespec(wait_ns);
    const int count = io_getevents(context_, at_least, static_cast<long>(events_.size()),
                                   events_.data(), &timeout);
    if (count == -EINTR || count == 0) return OkStatus();
    if (count < 0) return ErrnoStatus(-count, "libaio: io_getevents");
    StampNow();
    in_kernel_ -= static_cast<size_t>(count);
    for (int i = 0; i < count; ++i) {
      const uint32_t slot = SlotOf(events_[static_cast<size_t>(i)].obj);
      if (slot >= depth()) {
        out_[slot - depth()] = false;
        continue;
      }
      Finish(slot, static_cast<int64_t>(events_[static_cast<size_t>(i)].res));
    }
    return OkStatus();
  }

  io_context_t context_ = nullptr;
  std::vector<iocb> blocks_;  // one per slot, and one per OwnBlock
  std::vector<io_event> events_;
  std::vector<iocb*> pending_;  // issued, not yet accepted by the kernel
  size_t in_kernel_ = 0;
  bool out_[kOwnBlocks] = {};
  bool wake_works_ = true;
  const std::unique_ptr<DiscardRing> discards_;  // null if the kernel has no io_uring
  DiscardRule discard_rule_;
  std::vector<DiscardRing::Answer> discard_answers_;
};

}  // namespace

Result<std::unique_ptr<Engine>> MakeLibaioEngine(const EngineOptions& options) {
  auto engine = std::make_unique<LibaioEngine>(options);
  RETURN_IF_ERROR(engine->Open());
  return std::unique_ptr<Engine>(std::move(engine));
}

}  // namespace blktape
