#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>

#include "base/status.h"
#include "replay/buffer_arena.h"
#include "replay/issuer.h"
#include "replay/plan.h"
#include "replay/spsc_ring.h"

namespace blktape {

// Fills the buffer of a planned write.
using PayloadFill = std::function<void(const PlannedIo&)>;

// Plans in the issuing thread, one step ahead, without buffers: for engines that touch no data on a
// clock that moves only when slept on.
class InlineFeed : public PlanFeed {
 public:
  explicit InlineFeed(Plan* plan) : plan_(plan) {}

  State Peek(PlannedIo** io) override;
  void Pop() override { held_ = false; }
  bool WantsMemory() const override { return false; }
  // Why the plan ended before its end; ok if it did not.
  const Status& status() const { return status_; }

 private:
  Plan* const plan_;
  PlannedIo io_;
  bool held_ = false;
  Status status_;
};

// Plans, takes buffers and fills them in a thread of its own, ahead of the issuing thread as far as
// the ring and the arena allow.
class ThreadedFeed : public PlanFeed {
 public:
  // Pointers must outlive the feed; between Start() and the end of Stop() the plan and the arena
  // are the thread's.
  ThreadedFeed(Plan* plan, BufferArena* arena, PayloadFill fill);
  ~ThreadedFeed() override;

  void Start();
  // Ends the thread, whether the plan has ended or not.
  void Stop();
  // Whether as much is prepared as can be: the moment to start.
  bool primed() const { return primed_.load(std::memory_order_acquire); }
  // After Stop(): why the plan ended before its end; ok if it did not.
  const Status& status() const { return status_; }

  State Peek(PlannedIo** io) override;
  void Pop() override;
  bool WantsMemory() const override { return wants_memory_.load(std::memory_order_relaxed); }

  // The buffer of a step is not needed any more. One thread, always the same.
  void Return(const PlannedIo& io);

 private:
  struct Returned {
    std::byte* buffer = nullptr;
    uint64_t bytes = 0;
  };
  void Work();
  bool TakeBuffer(PlannedIo* io);
  bool WaitForRoom();
  bool Push(const PlannedIo& io);
  void TakeBack();
  bool Pause(int64_t* pause_ns);

  Plan* const plan_;
  BufferArena* const arena_;
  const PayloadFill fill_;
  SpscRing<PlannedIo> ring_;
  SpscRing<Returned> returned_;
  uint64_t pushed_bytes_ = 0;  // of the steps' buffers
  std::atomic<uint64_t> popped_bytes_ = 0;
  std::atomic<bool> ended_ = false;
  std::atomic<bool> primed_ = false;
  std::atomic<bool> wants_memory_ = false;
  std::atomic<bool> quit_ = false;
  Status status_;
  std::thread thread_;
};

}  // namespace blktape
