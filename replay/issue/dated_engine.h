#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "replay/engine/engine.h"
#include "replay/issue/issue_totals.h"
#include "replay/issue/issuer_options.h"
#include "replay/issue/slot_table.h"

namespace blktape {

// An engine, and of each I/O when it was submitted and when it was complete, as far as the thread
// can know: its CPU can be taken from it at any moment, by a hypervisor or by interrupts, for
// longer than a hundred I/Os take. Times in ns on the clock. Used by the issuing thread alone.
class DatedEngine {
 public:
  // All must outlive it.
  DatedEngine(Engine* engine, Clock* clock, const IssuerOptions& options, IssueTotals* totals);

  const Engine& engine() const { return *engine_; }
  int64_t NowNs() { return read_ns_ = clock_->NowNs(); }

  // Hands over the batch from its `from`th request on, and stamps it. Returns how many the engine
  // took; fails if the engine does.
  Result<size_t> Submit(SlotTable* slots, size_t from);
  // Until when completions are polled for, given what was submitted.
  int64_t poll_until_ns() const { return poll_until_ns_; }
  // See Engine.
  Status Rehearse() { return engine_->Rehearse(); }

  // Asks for completions until one is there or the deadline has passed. Those of the time before
  // are forgotten.
  Status Reap(int64_t deadline_ns);
  std::span<const EngineCompletion> completions() const {
    return std::span(completions_).first(completed_);
  }
  void ForgetCompletions() { completed_ = 0; }
  // Reap() slept until now and found nothing.
  void SeeNothing(int64_t now_ns) { looked_ns_ = now_ns; }
  // Fills in when the I/O of this completion, one of the last Reap(), was issued, complete and
  // seen.
  void Date(const EngineCompletion& completion, SlotTable* slots);

 private:
  // Of a target: how many were submitted, and were complete at the first look after that.
  struct Promptness {
    uint64_t submitted = 0;
    uint64_t within_call = 0;
  };
  bool DoneWithinCall(const EngineCompletion& completion, const SlotTable::Slot& slot);

  Engine* const engine_;
  Clock* const clock_;
  const IssuerOptions& options_;
  IssueTotals* const totals_;
  std::vector<EngineCompletion> completions_;
  size_t completed_ = 0;
  int64_t poll_until_ns_ = INT64_MIN;
  int64_t read_ns_ = INT64_MIN;    // the clock, when it was read last
  uint64_t looks_ = 0;             // how often the engine was asked for completions
  int64_t looked_ns_ = INT64_MIN;  // when it was last
  // Of the last look: when the one before it was; the clock and the deadline when it began.
  int64_t looked_before_ns_ = INT64_MIN;
  int64_t asked_ns_ = INT64_MIN;
  int64_t deadline_ns_ = INT64_MIN;
  std::vector<Promptness> promptness_;  // by target
};

}  // namespace blktape
