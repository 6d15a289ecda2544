#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "replay/engine/engine.h"
#include "replay/issue/busy_time.h"
#include "replay/issue/dated_engine.h"
#include "replay/issue/issue_totals.h"
#include "replay/issue/issued_io.h"
#include "replay/issue/issuer_options.h"
#include "replay/issue/pacer.h"
#include "replay/issue/plan_feed.h"
#include "replay/issue/slot_table.h"
#include "replay/issue/waiter.h"

namespace blktape {

// The stop reason of an issuer that stopped because another one did.
inline constexpr char kStoppedByLane[] = "another issuing thread stopped";

// Issues planned I/Os at their time and reaps them promptly: the only thread that touches its
// engine. Parses nothing, allocates nothing, logs nothing while it runs. With a thread in reserve
// it looks for what is due, issues and books in a turn, and waits outside of one.
class Issuer {
 public:
  // All pointers must outlive the issuer.
  Issuer(Engine* engine, Clock* clock, PlanFeed* feed, IssueSink* sink, IssueCounters* counters,
         const StopFlags& stop, const IssuerOptions& options);

  // Runs the plan from `start_ns` on (which may lie in the future) until it ends, a stop flag is
  // set, or an I/O failed and that stops it; always waits for what is in flight. Fails if the
  // engine does.
  Status Run(int64_t start_ns);

  // After Run().
  const IssueTotals& totals() const { return totals_; }

  // For a ReserveThread with an engine of its own. In its turn: books what that has completed;
  // submits to it what is due, and returns how much; and when the step at the front is due.
  bool BookCompletions(DatedEngine* engine);
  Result<size_t> IssueInReserve(DatedEngine* engine, int64_t now_ns);
  int64_t NextDueNs();
  bool stopping() const { return totals_.stopped_early; }
  // At any time: its engine failed, so Run() fails; whether Run() has ended.
  void FailReserve(const Status& status);
  bool ended() const { return run_ended_.load(std::memory_order_acquire); }
  const IssuerOptions& options() const { return options_; }
  IssueTotals* totals_in_turn() { return &totals_; }

 private:
  Status Work();
  void TakeDue(int64_t now_ns);
  Status SubmitBatch(DatedEngine* engine);
  void Complete(const EngineCompletion& completion, DatedEngine* engine);
  void LookAtStopFlags();
  void StopEarly(const std::string& reason);

  PlanFeed* const feed_;
  IssueSink* const sink_;
  IssueCounters* const counters_;
  const StopFlags stop_;
  const IssuerOptions options_;
  IssueTotals totals_;
  DatedEngine engine_;
  SlotTable slots_;
  const std::unique_ptr<Pacer> pacer_;
  BusyTime busy_;
  Waiter waiter_;
  std::atomic<bool> run_ended_ = false;
  Status reserve_status_;  // once it failed
  std::atomic<bool> reserve_failed_ = false;
};

}  // namespace blktape
