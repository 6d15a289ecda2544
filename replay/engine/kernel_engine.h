#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "replay/engine/engine.h"
#include "replay/engine/engine_options.h"
#include "replay/engine/flush_order.h"
#include "replay/engine/request_progress.h"
#include "replay/engine/sync_pool.h"

namespace blktape {

// The common part of the engines that use the kernel: slots for requests in flight, continuation of
// short transfers, the pool for blocking calls, and the loop of Reap. A subclass implements one
// kernel interface.
class KernelEngine : public Engine {
 public:
  uint32_t depth() const override { return depth_; }
  uint32_t in_flight() const override { return in_flight_; }
  Result<size_t> Submit(std::span<const EngineRequest> requests) override;
  Result<size_t> Reap(std::span<EngineCompletion> out, int64_t deadline_ns) override;
  Status Rehearse() override;

 protected:
  explicit KernelEngine(const EngineOptions& options);

  // Called once by the thread that uses the engine, before anything else.
  virtual Status Attach() { return OkStatus(); }
  // Prepares `step` for the next Push. The subclass reports the result with Finish(slot), possibly
  // from within Issue.
  virtual void Issue(uint32_t slot, const EngineStep& step) = 0;
  // Submits all prepared steps to the kernel.
  virtual Status Push() = 0;
  // Calls Finish for each step that the kernel has completed, without waiting.
  virtual Status Collect() = 0;
  // Returns when there is something to collect, or after `wait_ns`, or earlier. `pool_busy`: the
  // wait must also end when the pool's event_fd becomes readable.
  virtual Status Wait(int64_t wait_ns, bool pool_busy) = 0;
  // Submits a zero-length read at the start of a target, whose completion Collect ignores. Does
  // nothing if the kernel would not complete the read during its submission.
  virtual Status IssueEmptyRead(uint32_t target_index) = 0;
  // True if Wait would only cost time (polled completion): Reap then spins instead.
  virtual bool polls() const { return false; }

  // Reads the clock for the completions that Finish books next. Called after the kernel has shown
  // them: an earlier time would make their latency too short.
  void StampNow() { now_ns_ = clock_->NowNs(); }
  // Books the result of the step issued for `slot`: a number of bytes or a negative errno.
  void Finish(uint32_t slot, int64_t result);
  // Hands the step to the pool, after the next Push.
  void HandToPool(uint32_t slot, const EngineStep& step);

  RequestProgress& progress(uint32_t slot) { return slots_[slot]; }
  const Target& TargetOf(const EngineRequest& request) const;
  const Target& target(uint32_t slot) const { return TargetOf(slots_[slot].request()); }
  const std::vector<const Target*>& targets() const { return targets_; }
  int pool_event_fd() const { return pool_->event_fd(); }
  // Waits, for at most a few seconds, until nothing is in flight, so that the kernel does not write
  // to a buffer that its owner has freed. For destructors of subclasses.
  void DrainForClose();

 private:
  Status AttachOnce();
  // Issues the step once an earlier flush of its device has got to the drive.
  void IssueInPlace(uint32_t slot, const EngineStep& step);
  // Issues the next step of the request in `slot`, unless it is a flush that has to wait.
  void IssueNext(uint32_t slot);
  void IssueReady(FlushOrder* order);
  // The request in `slot` is complete.
  void Release(uint32_t slot);
  FlushOrder* FlushOrderOf(uint32_t slot);
  Status PushAll();
  size_t TakeReady(std::span<EngineCompletion> out);
  Status Gather();

  const std::vector<const Target*> targets_;
  const uint32_t depth_;
  Clock* const clock_;
  bool attached_ = false;
  std::vector<RequestProgress> slots_;
  std::vector<uint32_t> free_;
  std::vector<FlushOrder> flush_orders_;  // by target
  const bool flushes_keep_their_place_;
  std::vector<int64_t> flush_there_ns_;  // by target: when the last flush has got to the drive
  int64_t held_back_ns_ = 0;             // what is submitted now, so far
  bool submitting_ = false;              // Submit has not got to its Push
  bool pushing_ = false;
  std::vector<EngineCompletion> ready_;  // from ready_begin_ on
  size_t ready_begin_ = 0;
  uint32_t in_flight_ = 0;  // accepted and not yet reaped
  std::unique_ptr<SyncPool> pool_;
  struct Handed {
    uint32_t slot = 0;
    EngineStep step;
  };
  std::vector<Handed> for_pool_;  // not yet submitted to it
  std::vector<SyncPool::Outcome> pool_outcomes_;
  int64_t now_ns_ = 0;      // the latest stamp
  uint32_t rehearsed_ = 0;  // the target of the next rehearsal
};

}  // namespace blktape
