#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

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
  static Result<std::unique_ptr<SyncPool>> Open();
  ~SyncPool();

  struct Outcome {
    uint32_t slot = 0;
    int64_t result = 0;
  };
  void Submit(uint32_t slot, int fd, bool is_block_device, const EngineStep& step);
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
  explicit SyncPool(UniqueFd event_fd) : event_fd_(std::move(event_fd)) {}
  void Work();

  static constexpr size_t kMaxThreads = 8;
  const UniqueFd event_fd_;
  uint32_t outstanding_ = 0;
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
