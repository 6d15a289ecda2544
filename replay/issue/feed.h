#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/spsc_ring.h"
#include "base/status.h"
#include "replay/issue/buffer_arena.h"
#include "replay/issue/lane_router.h"
#include "replay/issue/plan_feed.h"
#include "replay/plan/plan.h"

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

// Plans, takes buffers and fills them in a thread of its own, ahead of the issuing threads as far
// as the rings and the arena allow. Each issuing thread takes from a lane of its own.
class ThreadedFeed {
 public:
  // At most so many steps lie ready for an issuing thread: 4 ms at 500,000 I/Os a second.
  static constexpr size_t kStepsAhead = 2048;
  struct Options {
    // At most so much of the arena is held by steps not issued yet, but for one step.
    uint64_t ahead_bytes = 0;
    // Once it holds so much, it is added to again when it holds no more than this.
    uint64_t refill_bytes = 0;
    // Reads of at most so many bytes get no buffer: the issuers have some for them.
    uint64_t unbuffered_read_bytes = 0;
    uint32_t lanes = 1;
    LaneRouter* router = nullptr;  // null where there is one lane
    bool gives_way = false;        // its thread, to the issuing ones: see GiveWay()
  };
  // Pointers must outlive the feed; between Start() and the end of Stop() the plan, the arena and
  // the router are the thread's.
  ThreadedFeed(Plan* plan, BufferArena* arena, PayloadFill fill, const Options& options);
  ~ThreadedFeed();

  void Start();
  // Ends the thread, whether the plan has ended or not.
  void Stop();
  // Whether as much is prepared as can be: the moment to start.
  bool primed() const { return primed_.load(std::memory_order_acquire); }
  // After Stop(): why the plan ended before its end; ok if it did not.
  const Status& status() const { return status_; }

  PlanFeed* lane(uint32_t lane);

  // The buffer of a step is not needed any more; null if it had none. For each lane one thread
  // at a time.
  void Return(uint32_t lane, std::byte* buffer, uint64_t bytes);

 private:
  class Lane;

  void Work();
  bool TakeBuffer(PlannedIo* io);
  bool NeedsBuffer(const PlannedIo& io) const;
  bool WaitForRoom();
  bool PushToLane(const PlannedIo& io);
  bool Push(const PlannedIo& io, Lane* lane);
  uint32_t Roomiest() const;
  void TakeBack();
  bool Pause(int64_t* pause_ns);

  Plan* const plan_;
  BufferArena* const arena_;
  const PayloadFill fill_;
  const Options options_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  uint64_t pushed_bytes_ = 0;  // of the steps' buffers
  int64_t room_took_ns_ = 0;   // until there was room in a ring, the last time
  std::atomic<bool> ended_ = false;
  std::atomic<bool> primed_ = false;
  std::atomic<bool> wants_memory_ = false;
  std::atomic<bool> quit_ = false;
  Status status_;
  std::thread thread_;
};

}  // namespace blktape
