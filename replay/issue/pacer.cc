#include "replay/issue/pacer.h"

#include <algorithm>
#include <atomic>
#include <span>

#include "replay/issue/due_rules.h"
#include "replay/issue/gated_queue.h"
#include "replay/issue/lane_progress.h"
#include "replay/plan/timing_rule.h"

namespace blktape {
namespace {

// I/Os of a closed replay that wait for others or for their time: so far a thread of the recording
// can be ahead of another.
constexpr uint32_t kHeldIos = 16384;
// Steps of the plan taken at a time, between which completions are looked for.
constexpr int kStepsATurn = 64;

template <class Rule>
class InOrderPacer : public Pacer {
 public:
  InOrderPacer(const IssuerOptions& options, PlanFeed* feed, SlotTable* slots, IssueTotals* totals)
      : Pacer(options, feed, slots),
        totals_(totals),
        lanes_(options.lanes),
        rule_(options, *slots) {}

  void Start(int64_t start_ns) override {
    Pacer::Start(start_ns);
    rule_.Start(start_ns);
  }
  void Completed(uint32_t gate, int64_t seen_ns) override { rule_.Completed(gate, seen_ns); }

 protected:
  void Take(int64_t now_ns) override {
    PlannedIo* io = nullptr;
    while (!slots_->batch_full()) {
      const PlanFeed::State state = feed_->Peek(&io);
      if (state != PlanFeed::State::kReady) {
        ended_ = state == PlanFeed::State::kEnd;
        starving_ = !ended_;
        blocked_ = blocked_ || (starving_ && feed_->WantsMemory());
        return;
      }
      if (io->kind == PlannedIo::Kind::kAwait) {
        if (!LaneHasCome(*io, now_ns)) return;
        feed_->Pop();
        continue;
      }
      Unblock();
      if (!required_) rule_.Require(*io);
      required_ = io->kind != PlannedIo::Kind::kGates;
      if (!required_) {
        feed_->Pop();
        continue;
      }
      const std::optional<int64_t> due_ns = rule_.DueNs(*io);
      if (!due_ns) return;
      ended_ = !InTime(*due_ns);
      if (ended_) return;
      if (*due_ns > now_ns) {
        next_due_ns_ = due_ns;
        return;
      }
      if (!slots_->has_free()) return;
      slots_->Take(*io, *due_ns, freed_, io->gate_slot);
      rule_.Took(*io);
      feed_->Pop();
      required_ = false;
    }
  }

 private:
  bool LaneHasCome(const PlannedIo& await, int64_t now_ns) {
    const LaneProgress& lane = lanes_[await.target];
    starving_ = lane.complete_through.load(std::memory_order_acquire) < await.sequence;
    if (!starving_) {
      // The other lane's completion is not known here to the moment.
      if (blocked_) slots_->SeeLatest({.ns = now_ns, .by = await.sequence});
      ++totals_->overlaps_ordered;
    }
    blocked_ = blocked_ || starving_;
    return !starving_;
  }

  IssueTotals* const totals_;
  const std::span<LaneProgress> lanes_;
  Rule rule_;
  bool required_ = false;  // the rule was told what the step at the front requires
};

// When what it waited for in the recording is complete and its think time is over, out of the
// plan's order.
class ClosedPacer : public Pacer {
 public:
  ClosedPacer(const IssuerOptions& options, PlanFeed* feed, SlotTable* slots, IssueSink* sink,
              IssueTotals* totals)
      : Pacer(options, feed, slots),
        sink_(sink),
        totals_(totals),
        lane_(static_cast<uint8_t>(options.lane)),
        queue_(kHeldIos, options.depth) {}

  void Start(int64_t start_ns) override {
    Pacer::Start(start_ns);
    queue_.Start(start_ns);
  }
  void Completed(uint32_t gate, int64_t seen_ns) override { queue_.Complete(gate, seen_ns); }

 protected:
  void Take(int64_t now_ns) override;

 private:
  void TakeOpen(int64_t now_ns);
  void FillQueue(int64_t now_ns);
  void TellLeftOut();
  bool WaitsForPlan() const;
  void EndCommits(int64_t now_ns);

  IssueSink* const sink_;
  IssueTotals* const totals_;
  const uint8_t lane_;
  GatedQueue queue_;
  bool slots_blocked_ = false;  // what was due found no slot
};

void ClosedPacer::Take(int64_t now_ns) {
  TellLeftOut();
  TakeOpen(now_ns);
  FillQueue(now_ns);
  if (slots_->batch().empty()) TakeOpen(now_ns);
  totals_->commits = queue_.commits();
}

void ClosedPacer::TakeOpen(int64_t now_ns) {
  next_due_ns_.reset();
  while (queue_.NextDueNs() <= now_ns) {
    if (slots_->batch_full()) return;
    slots_blocked_ = !slots_->has_free() || slots_blocked_;
    if (!slots_->has_free()) return;
    const GatedQueue::Taken taken = queue_.Take();
    SlotTable::Freed freed{.ns = taken.freed_ns};
    if (slots_blocked_) freed.ns = std::max(freed.ns, slots_->latest().ns);
    slots_->Take(taken.io, taken.due_ns, freed, taken.gate);
  }
  slots_blocked_ = false;
  if (queue_.NextDueNs() != INT64_MAX) next_due_ns_ = queue_.NextDueNs();
}

void ClosedPacer::TellLeftOut() {
  PlannedIo io;
  while (queue_.TakeLeftOut(&io)) {
    IssuedIo told;
    told.left_out = true;
    told.op = io.op;
    told.lane = lane_;
    told.flags = io.flags;
    told.target = io.target;
    told.sequence = io.sequence;
    told.ordinal = io.ordinal;
    told.bytes = io.bytes;
    told.buffer = io.buffer;
    sink_->Done(told);
  }
}

// Nothing can happen any more until more of the plan comes.
bool ClosedPacer::WaitsForPlan() const {
  return queue_.size() > 0 && queue_.NextDueNs() == INT64_MAX && slots_->out() == 0 &&
         slots_->batch().empty() && !slots_->any_parked();
}

// Takes steps of the plan into the queue, as far as there is room.
void ClosedPacer::FillQueue(int64_t now_ns) {
  PlannedIo* step = nullptr;
  for (int steps = 0; queue_.HasRoom(); ++steps) {
    more_steps_ = steps == kStepsATurn;
    if (more_steps_) return;
    const PlanFeed::State state = feed_->Peek(&step);
    if (state == PlanFeed::State::kEnd) {
      if (WaitsForPlan()) EndCommits(now_ns);
      ended_ = queue_.size() == 0;
      return;
    }
    if (state == PlanFeed::State::kNotYet) {
      const bool no_memory = feed_->WantsMemory();
      blocked_ = blocked_ || no_memory;
      if (no_memory && WaitsForPlan()) EndCommits(now_ns);
      starving_ = blocked_ || queue_.NextDueNs() == INT64_MAX;
      return;
    }
    Unblock();
    queue_.Add(*step, freed_.ns);
    TellLeftOut();
    feed_->Pop();
  }
  if (WaitsForPlan()) EndCommits(now_ns);
  blocked_ = true;
}

// The plan has no more, or no room for it, of a commit that others wait for.
void ClosedPacer::EndCommits(int64_t now_ns) {
  queue_.EndCommits(now_ns);
  TellLeftOut();
  more_steps_ = true;
}

}  // namespace

std::unique_ptr<Pacer> Pacer::Make(const IssuerOptions& options, PlanFeed* feed, SlotTable* slots,
                                   IssueSink* sink, IssueTotals* totals) {
  switch (options.rule) {
    case TimingRule::kTimed:
      return std::make_unique<InOrderPacer<TimedRule>>(options, feed, slots, totals);
    case TimingRule::kClosed:
      return std::make_unique<ClosedPacer>(options, feed, slots, sink, totals);
    case TimingRule::kMaxOrder:
      return std::make_unique<InOrderPacer<MaxOrderRule>>(options, feed, slots, totals);
    case TimingRule::kQueueDepth:
      return std::make_unique<InOrderPacer<QueueDepthRule>>(options, feed, slots, totals);
  }
  return nullptr;
}

void Pacer::TakeDue(int64_t now_ns) {
  if (ended_) return;
  next_due_ns_.reset();
  starving_ = more_steps_ = false;
  // Where another lane has ended, what the step at the front waits for may never come.
  ended_ = !InTime(now_ns);
  if (!ended_) Take(now_ns);
}

void Pacer::Unblock() {
  if (blocked_) freed_ = slots_->latest();
  blocked_ = false;
}

}  // namespace blktape
