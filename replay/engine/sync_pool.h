#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "replay/engine/request_progress.h"

namespace blktape {

// Executes `step` and waits for it. Returns the bytes that a read or write transferred, 0 for other
// operations, or a negative errno.
int64_t ExecuteStep(int fd, bool is_block_device, const EngineStep& step);

// A few threads for operations that the kernel offers only as blocking calls (discard before Linux
// 6.12, secure erase, zone management), and for what an engine cannot submit itself, or not well.
// They run where WorkerCpus() of the thread that submits has them. One thread submits and collects.
// The pool starts threads when needed; its destructor waits for running steps and ends the threads.
class SyncPool {
 public:
  // `clock`: of BegunNs(); must outlive it.
  static Result<std::unique_ptr<SyncPool>> Open(Clock* clock);
  ~SyncPool();

  struct Outcome {
    uint32_t slot = 0;
    int64_t result = 0;
  };
  // Returns how many have been submitted by now, this one included.
  uint64_t Submit(uint32_t slot, int fd, bool is_block_device, const EngineStep& step);
  // When a thread took the step of which Submit() returned `count`, or one after it, and was about
  // to make the call; absent if none has taken it. Without a lock.
  std::optional<int64_t> BegunNs(uint64_t count) const {
    if (taken_.load(std::memory_order_acquire) < count) return std::nullopt;
    return taken_ns_.load(std::memory_order_relaxed);
  }
  // Appends the outcomes of the steps finished since the last call.
  void Collect(std::vector<Outcome>* outcomes);
  // Submitted and not yet collected.
  uint32_t outstanding() const { return outstanding_; }
  // An eventfd (EFD_NONBLOCK), readable from when a step is finished until Collect.
  int event_fd() const { return event_fd_.get(); }

 private:
  struct Job {
    uint32_t slot = 0;
    int fd = -1;
    bool is_block_device = false;
    EngineStep step;
  };
  SyncPool(UniqueFd event_fd, Clock* clock) : event_fd_(std::move(event_fd)), clock_(clock) {}
  void Work();

  // As many flushes at a time share one of the drive's.
  static constexpr size_t kMaxThreads = 64;
  const UniqueFd event_fd_;
  Clock* const clock_;
  uint32_t outstanding_ = 0;
  uint64_t submitted_ = 0;
  std::atomic<uint64_t> taken_ = 0;
  std::atomic<int64_t> taken_ns_ = 0;  // the last of these
  std::atomic<bool> any_done_ = false;

  std::mutex mutex_;  // guards the members below
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  std::vector<Outcome> done_;
  size_t idle_ = 0;
  bool stop_ = false;

  std::vector<std::thread> threads_;
};

}  // namespace blktape
