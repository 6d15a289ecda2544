#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "replay/engine/engine.h"
#include "replay/engine/engine_options.h"
#include "replay/engine/request_progress.h"
#include "replay/engine/sync_pool.h"

namespace blktape {

// What the engines that ask the kernel have in common: slots for requests in flight, continuation
// of short transfers, the pool for calls that block, and the loop of Reap. A subclass knows one
// interface of the kernel.
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
  // Notes `step` for the next Push. The answer comes by Finish(slot), perhaps from within.
  virtual void Issue(uint32_t slot, const EngineStep& step) = 0;
  // Hands to the kernel what was issued, all of it.
  virtual Status Push() = 0;
  // Calls Finish for what the kernel has completed, without waiting.
  virtual Status Collect() = 0;
  // Returns when there is something to collect, after `wait_ns`, or earlier. `pool_busy`: the
  // pool's event_fd becoming readable must end the wait too.
  virtual Status Wait(int64_t wait_ns, bool pool_busy) = 0;
  // Hands the kernel a read of no bytes at the start of a target, which Collect ignores; or does
  // nothing where the kernel would not complete it within the submission.
  virtual Status IssueEmptyRead(uint32_t target_index) = 0;
  // Whether Wait would only cost time (polled completion): Reap spins instead.
  virtual bool polls() const { return false; }

  // Reads the clock for the completions that Finish books next: after the kernel has shown them,
  // since a stamp taken before would shorten their latency.
  void StampNow() { now_ns_ = clock_->NowNs(); }
  // The answer to the step issued for `slot`: bytes or a negative errno.
  void Finish(uint32_t slot, int64_t result);
  // Lets the pool do the step.
  void HandToPool(uint32_t slot, const EngineStep& step);

  RequestProgress& progress(uint32_t slot) { return slots_[slot]; }
  const Target& target(uint32_t slot) const;
  const std::vector<const Target*>& targets() const { return targets_; }
  int pool_event_fd() const { return pool_->event_fd(); }
  // Waits, at most some seconds, until nothing is in flight, so that no buffer is written to after
  // its owner believes it to be free. For destructors of subclasses.
  void DrainForClose();

 private:
  Status AttachOnce();
  size_t TakeReady(std::span<EngineCompletion> out);
  Status Gather();

  const std::vector<const Target*> targets_;
  const uint32_t depth_;
  Clock* const clock_;
  bool attached_ = false;
  std::vector<RequestProgress> slots_;
  std::vector<uint32_t> free_;
  std::vector<EngineCompletion> ready_;  // from ready_begin_ on
  size_t ready_begin_ = 0;
  uint32_t in_flight_ = 0;  // accepted and not yet reaped
  std::unique_ptr<SyncPool> pool_;
  std::vector<SyncPool::Outcome> pool_outcomes_;
  int64_t now_ns_ = 0;      // the latest stamp
  uint32_t rehearsed_ = 0;  // the target of the next rehearsal
};

}  // namespace blktape
