#include "replay/engine/sync_pool.h"

#include <fcntl.h>
#include <linux/blkzoned.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/units.h"
#include "replay/engine/worker_cpus.h"

namespace blktape {
namespace {

int64_t OutcomeOf(int returned) { return returned < 0 ? -errno : 0; }

int64_t Transfer(int fd, const EngineStep& step) {
  const iovec piece = {step.buffer, step.bytes};
  const auto offset = static_cast<off_t>(step.offset_bytes);
  const ssize_t moved = step.op == Op::kRead
                            ? preadv2(fd, &piece, 1, offset, 0)
                            : pwritev2(fd, &piece, 1, offset, step.durable ? RWF_DSYNC : 0);
  return moved < 0 ? -errno : moved;
}

int64_t RangeIoctl(int fd, unsigned long request, const EngineStep& step) {
  uint64_t range[2] = {step.offset_bytes, step.bytes};
  return OutcomeOf(ioctl(fd, request, range));
}

int64_t ZoneIoctl(int fd, unsigned long request, const EngineStep& step) {
  struct blk_zone_range range{};
  range.sector = step.offset_bytes / kSectorBytes;
  range.nr_sectors = step.bytes / kSectorBytes;
  return OutcomeOf(ioctl(fd, request, &range));
}

int64_t Fallocate(int fd, int mode, const EngineStep& step) {
  return OutcomeOf(fallocate(fd, mode | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(step.offset_bytes),
                             static_cast<off_t>(step.bytes)));
}

}  // namespace

int64_t ExecuteStep(int fd, bool is_block_device, const EngineStep& step) {
  switch (step.op) {
    case Op::kFlush:
      return OutcomeOf(fdatasync(fd));
    case Op::kDiscard:
      return is_block_device ? RangeIoctl(fd, BLKDISCARD, step)
                             : Fallocate(fd, FALLOC_FL_PUNCH_HOLE, step);
    case Op::kWriteZeroes:
      return is_block_device ? RangeIoctl(fd, BLKZEROOUT, step)
                             : Fallocate(fd, FALLOC_FL_ZERO_RANGE, step);
    case Op::kSecureErase:
      return is_block_device ? RangeIoctl(fd, BLKSECDISCARD, step) : -EOPNOTSUPP;
    case Op::kZoneReset:
    case Op::kZoneResetAll:
      return ZoneIoctl(fd, BLKRESETZONE, step);
    case Op::kZoneOpen:
      return ZoneIoctl(fd, BLKOPENZONE, step);
    case Op::kZoneClose:
      return ZoneIoctl(fd, BLKCLOSEZONE, step);
    case Op::kZoneFinish:
      return ZoneIoctl(fd, BLKFINISHZONE, step);
    case Op::kRead:
    case Op::kWrite:
      return Transfer(fd, step);
    case Op::kZoneAppend:
      break;
  }
  return -EOPNOTSUPP;
}

Result<std::unique_ptr<SyncPool>> SyncPool::Open() {
  UniqueFd event_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event_fd) return ErrnoStatus(errno, "eventfd");
  return std::unique_ptr<SyncPool>(new SyncPool(std::move(event_fd)));
}

SyncPool::~SyncPool() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void SyncPool::Submit(uint32_t slot, int fd, bool is_block_device, const EngineStep& step) {
  bool start_thread = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    jobs_.push_back({slot, fd, is_block_device, step});
    start_thread = jobs_.size() > idle_ && threads_.size() < kMaxThreads;
  }
  ++outstanding_;
  if (!start_thread) {
    wake_.notify_one();
    return;
  }
  // Other threads of the program handle signals; these do not.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  threads_.emplace_back([this, cpus = WorkerCpus()] {
    (void)sched_setaffinity(0, sizeof cpus, &cpus);
    Work();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void SyncPool::Collect(std::vector<Outcome>* outcomes) {
  // Who polls looks often, and must not keep the threads from the lock.
  if (!any_done_.load(std::memory_order_acquire)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  any_done_.store(false, std::memory_order_relaxed);
  uint64_t count = 0;
  (void)!read(event_fd_.get(), &count, sizeof count);
  outcomes->insert(outcomes->end(), done_.begin(), done_.end());
  outstanding_ -= static_cast<uint32_t>(done_.size());
  done_.clear();
}

void SyncPool::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    ++idle_;
    wake_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
    --idle_;
    if (jobs_.empty()) return;
    const Job job = jobs_.front();
    jobs_.pop_front();
    lock.unlock();
    const int64_t result = ExecuteStep(job.fd, job.is_block_device, job.step);
    lock.lock();
    done_.push_back({job.slot, result});
    const uint64_t one = 1;
    (void)!write(event_fd_.get(), &one, sizeof one);
    any_done_.store(true, std::memory_order_release);
  }
}

}  // namespace blktape
