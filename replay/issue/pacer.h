#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "replay/issue/issue_totals.h"
#include "replay/issue/issuer_options.h"
#include "replay/issue/plan_feed.h"
#include "replay/issue/slot_table.h"
#include "replay/plan/plan.h"

namespace blktape {

// Takes the I/Os of a plan when they are due; there is one for each timing rule. Times in ns on the
// replay's clock. Nothing is allocated after construction. Not thread-safe.
class Pacer {
 public:
  // All must outlive the pacer, whose rule is `options.rule`. The sink is told of what is left out.
  static std::unique_ptr<Pacer> Make(const IssuerOptions& options, PlanFeed* feed, SlotTable* slots,
                                     IssueSink* sink, IssueTotals* totals);
  virtual ~Pacer() = default;

  // Once, before all else.
  virtual void Start(int64_t start_ns) { start_ns_ = start_ns; }
  // Puts what is due now into the batch, as far as that and the slots have room. What follows tells
  // why it took no more.
  void TakeDue(int64_t now_ns);
  // An I/O that was taken with this gate was seen to be complete.
  virtual void Completed(uint32_t gate, int64_t seen_ns) = 0;

  bool ended() const { return ended_; }  // nothing more is to be issued
  // Of the I/O that is due next, if only time keeps it.
  const std::optional<int64_t>& next_due_ns() const { return next_due_ns_; }
  bool starving() const { return starving_; }      // another thread keeps it
  bool more_steps() const { return more_steps_; }  // nothing does

 protected:
  Pacer(const IssuerOptions& options, PlanFeed* feed, SlotTable* slots)
      : feed_(feed), slots_(slots), duration_ns_(options.duration_ns) {}

  virtual void Take(int64_t now_ns) = 0;
  bool InTime(int64_t ns) const { return !duration_ns_ || ns <= start_ns_ + *duration_ns_; }
  // The next step of the plan, of which what kept it back (memory, room, another lane) has gone by
  // now.
  void Unblock();

  PlanFeed* const feed_;
  SlotTable* const slots_;
  const std::optional<int64_t> duration_ns_;
  int64_t start_ns_ = 0;
  bool ended_ = false;
  bool starving_ = false;
  bool more_steps_ = false;
  std::optional<int64_t> next_due_ns_;
  bool blocked_ = false;    // the step at the front waits for the drive, not for a slot
  SlotTable::Freed freed_;  // what one at the front had last waited for so
};

}  // namespace blktape
