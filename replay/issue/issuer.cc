#include "replay/issue/issuer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/units.h"

namespace blktape {
namespace {

// How often a waiting thread looks whether it shall stop.
constexpr int64_t kStopPollNs = 100 * kNanosPerMilli;
// How long it waits for completions before it looks again whether another thread has come on.
constexpr int64_t kFeedPollNs = 20 * kNanosPerMicro;
// Out of a long sleep a thread wakes late: the processor has to come out of a deeper idle state, a
// virtual one out of its host's queue. So the last part of it is a sleep of its own, this short.
constexpr int64_t kShortSleepNs = 250 * kNanosPerMicro;
constexpr int64_t kForever = INT64_MAX;
// What is overdue by so much and not issued shows the thread in reserve that the first is held up.
constexpr int64_t kOverdueNs = 30 * kNanosPerMicro;
// It looks for that so long after a due time, no sooner: most I/Os are complete by then, and it
// does not get in the way of those in the kernel who complete them. And so often at the most.
constexpr int64_t kLookAfterNs = 250 * kNanosPerMicro;
constexpr int64_t kLookEveryNs = 500 * kNanosPerMicro;
// The longest sleep of the thread in reserve, and how long it goes on relieving without work.
constexpr int64_t kReserveSleepNs = 10 * kNanosPerMilli;
// A submission that takes longer was stopped in its midst; most take 5 to 30 us. And a thread that
// waits without sleeping looks for completions every few.
constexpr int64_t kStalledNs = 100 * kNanosPerMicro;
// So many must have been submitted before a target's driver is taken for one without a queue.
constexpr uint64_t kFewSubmissions = 4;
// How long it waits where it does not get its turn, or cannot issue what is due.
constexpr int64_t kTurnRetryNs = 20 * kNanosPerMicro;
// The longest that Engine::Rehearse() takes: an I/O that is due sooner would be late for it.
constexpr int64_t kRehearsalNs = 10 * kNanosPerMicro;
// I/Os of a closed replay that wait for others or for their time: so far a thread of the recording
// can be ahead of another.
constexpr uint32_t kHeldIos = 16384;
// Steps of the plan taken at a time, between which completions are looked for.
constexpr int kStepsATurn = 64;
// A thread that slept less than a twentieth of this long never sleeps.
constexpr int64_t kSleepWindowNs = 100 * kNanosPerMilli;

}  // namespace

Issuer::Side::Side(Engine* used, uint32_t depth)
    : engine(used), completions(std::min<uint32_t>(depth, 256)) {}

Issuer::Issuer(Engine* engine, Clock* clock, PlanFeed* feed, IssueSink* sink,
               IssueCounters* counters, const StopFlags& stop, const IssuerOptions& options)
    : first_(engine, options.depth),
      clock_(clock),
      feed_(feed),
      sink_(sink),
      counters_(counters),
      stop_(stop),
      options_(options),
      slots_(options.depth),
      guard_(options.depth),
      frontier_(options.depth),
      spin_(options.spin_ns) {
  BLKTAPE_CHECK(options.depth >= 1 && options.depth <= engine->depth() && options.batch >= 1);
  free_slots_.reserve(options.depth);
  for (uint32_t slot = options.depth; slot > 0; --slot) free_slots_.push_back(slot - 1);
  parked_.reserve(options.depth);
  batch_.reserve(options.depth);
  batch_slots_.reserve(options.depth);
  if (options.has_reserve) totals_.issued_by_reserve = 0;
  if (options.rule == TimingRule::kMaxOrder) gates_.resize(kMaxGateSlots);
  if (options.rule == TimingRule::kClosed) queue_.emplace(kHeldIos, options.depth);
  if (options.rule == TimingRule::kQueueDepth) slot_freed_ns_.resize(options.depth);
}

void Issuer::StopEarly(const std::string& reason) {
  if (stopping_) return;
  stopping_ = true;
  totals_.stopped_early = true;
  totals_.stop_reason = reason;
  if (stop_.by_lane != nullptr) stop_.by_lane->store(true, std::memory_order_relaxed);
}

bool Issuer::Promptness::synchronous() const {
  return submitted >= kFewSubmissions && within_call >= submitted / 4 * 3;
}

// A driver without a queue (zram, pmem, the page cache) does the work within the call that submits
// it. One stop of the host in a call looks the same; a target shows which it is by most of its
// I/Os.
bool Issuer::DoneWithinCall(const EngineCompletion& completion, const Side& side,
                            const Slot& slot) {
  if (!IsPunctual(options_.rule)) return false;
  if (slot.io.target >= promptness_.size()) promptness_.resize(slot.io.target + 1);
  Promptness& target = promptness_[slot.io.target];
  const bool at_first_look = !completion.woken && side.looks == slot.looks + 1;
  ++target.submitted;
  if (at_first_look) ++target.within_call;
  return at_first_look && target.synchronous();
}

// When it was submitted and when it was complete, as far as that can be known. A completion is
// found by a look at the engine; where the look before was longer ago than any healthy host takes,
// or the thread was to wake of itself sooner, it may have been there since then.
void Issuer::Date(const EngineCompletion& completion, const Side& side, Slot* slot) {
  IssuedIo& io = slot->io;
  io.complete_ns = io.seen_ns = completion.complete_ns;
  if (DoneWithinCall(completion, side, *slot)) {
    if (io.issue_ns != slot->submit_begin_ns) --totals_.stalled_submissions;
    io.issue_ns = slot->submit_begin_ns;
    ++totals_.done_within_call;
    held_ns_ = io.seen_ns;
    held_by_ = io.sequence;
    return;
  }
  if (io.complete_ns < io.issue_ns) io.issue_ns = slot->submit_begin_ns;
  if (completion.woken) ++totals_.woken_completions;
  if (io.seen_ns < side.asked_ns) return;  // an engine that knows the moment itself
  const int64_t known_ns =
      std::max(io.issue_ns, completion.woken ? side.deadline_ns : side.looked_before_ns);
  if (known_ns >= io.seen_ns - kStalledNs) return;
  io.complete_ns = known_ns;
  ++totals_.stalled_completions;
}

void Issuer::Complete(const EngineCompletion& completion, const Side& side) {
  const uint32_t slot = static_cast<uint32_t>(completion.tag);
  IssuedIo& io = slots_[slot].io;
  const uint32_t gate_slot = slots_[slot].gate_slot;
  Date(completion, side, &slots_[slot]);
  io.bytes_done = completion.bytes_done;
  io.error = completion.error;
  io.punted = completion.punted;
  if (io.seen_ns >= booked_ns_) {
    booked_ns_ = io.seen_ns;
    booked_by_ = io.sequence;
  }
  for (const uint32_t parked : parked_) {
    if (!guard_.Hinders(slot, parked)) continue;
    slots_[parked].io.freed_ns = io.seen_ns;
    slots_[parked].io.freed_by = io.sequence;
  }
  guard_.Remove(slot);
  if (!options_.lanes.empty()) {
    frontier_.Done(slot);
    options_.lanes[options_.lane].complete_through.store(frontier_.complete_through(),
                                                         std::memory_order_release);
  }
  free_slots_.push_back(slot);
  if (options_.rule == TimingRule::kQueueDepth) {
    slot_freed_ns_[(freed_head_ + freed_count_++) % slot_freed_ns_.size()] = io.seen_ns;
  }
  if (queue_) {
    queue_->Complete(slots_[slot].gate, io.seen_ns);
  } else if (gate_slot != kNoGateSlot) {
    Gate& gate = gates_[gate_slot];
    gate.seen_ns = io.seen_ns;
    if (gate.state == GateState::kRequired) {
      --required_out_;
      gate_open_ns_ = std::max(gate_open_ns_, io.seen_ns);
    }
    gate.state = GateState::kDone;
  }
  totals_.last_complete_ns = std::max(totals_.last_complete_ns, io.complete_ns);
  parked_ready_ = true;
  counters_->completed.store(counters_->completed.load(std::memory_order_relaxed) + 1,
                             std::memory_order_relaxed);
  counters_->bytes.store(counters_->bytes.load(std::memory_order_relaxed) + io.bytes_done,
                         std::memory_order_relaxed);
  if (io.error != 0) {
    counters_->errors.store(counters_->errors.load(std::memory_order_relaxed) + 1,
                            std::memory_order_relaxed);
    if (options_.stop_on_error) {
      StopEarly(std::string(OpName(io.op)) + " of " + std::to_string(io.bytes) + " bytes at byte " +
                std::to_string(io.offset_bytes) +
                " failed: " + std::strerror(static_cast<int>(io.error)));
    }
  }
  sink_->Done(io);
}

// Outside of a turn: what the engine has completed is booked in the next.
Status Issuer::Reap(Side* side, int64_t deadline_ns) {
  side->asked_ns = side->read_ns;
  side->deadline_ns = deadline_ns;
  side->looked_before_ns = side->looked_ns;
  ASSIGN_OR_RETURN(side->completed, side->engine->Reap(side->completions, deadline_ns));
  side->looked_ns = side->asked_ns;
  if (side->completed > 0) {
    side->looked_ns = std::max(side->looked_ns, side->completions[side->completed - 1].complete_ns);
  }
  ++side->looks;
  return OkStatus();
}

bool Issuer::BookCompletions(Side* side) {
  const bool any = side->completed > 0;
  for (size_t i = 0; i < side->completed; ++i) Complete(side->completions[i], *side);
  side->completed = 0;
  return any;
}

void Issuer::Require(const PlannedIo& io) {
  for (int i = 0; i < io.required_count; ++i) {
    Gate& gate = gates_[io.required[i]];
    if (gate.state == GateState::kDone) {
      gate_open_ns_ = std::max(gate_open_ns_, gate.seen_ns);
    } else {
      gate.state = GateState::kRequired;
      ++required_out_;
    }
  }
}

Issuer::Gated Issuer::GateOf(const PlannedIo& io) const {
  switch (options_.rule) {
    case TimingRule::kTimed:
      return {.open = true, .due_ns = start_ns_ + io.offset_ns};
    case TimingRule::kClosed:  // the queue's
      break;
    case TimingRule::kMaxOrder:
      if (required_out_ > 0) return {};
      return {.open = true, .due_ns = gate_open_ns_ + io.offset_ns};
    case TimingRule::kQueueDepth:
      if (io.wait_idle) {
        if (free_slots_.size() < options_.depth) return {};
        return {.open = true, .due_ns = std::max(start_ns_, booked_ns_) + io.offset_ns};
      }
      if (freed_count_ == 0) return {};
      return {.open = true, .due_ns = slot_freed_ns_[freed_head_]};
  }
  return {};
}

bool Issuer::LaneHasCome(const PlannedIo& await) const {
  const LaneProgress& lane = options_.lanes[await.target];
  return lane.complete_through.load(std::memory_order_acquire) >= await.sequence;
}

std::byte* Issuer::BufferOf(uint32_t slot) const {
  const IssuedIo& io = slots_[slot].io;
  const bool own =
      io.buffer == nullptr && io.op == Op::kRead && io.bytes <= options_.read_buffer_bytes;
  return own ? options_.read_buffers + options_.read_buffer_bytes * slot : io.buffer;
}

void Issuer::Enqueue(uint32_t slot) {
  const IssuedIo& io = slots_[slot].io;
  batch_.push_back({.tag = slot,
                    .target = io.target,
                    .op = io.op,
                    .flags = io.flags,
                    .offset_bytes = io.offset_bytes,
                    .bytes = io.bytes,
                    .buffer = BufferOf(slot)});
  batch_slots_.push_back(slot);
}

void Issuer::Take(const PlannedIo& io, int64_t due_ns, Freed freed, uint32_t gate) {
  const uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  if (options_.rule == TimingRule::kQueueDepth) {
    freed_head_ = (freed_head_ + 1) % slot_freed_ns_.size();
    --freed_count_;
  }
  if (!options_.lanes.empty()) frontier_.Take(slot);
  slots_[slot].offset_ns = io.offset_ns;
  slots_[slot].gate_slot = io.gate_slot;
  // What the engine tells fills the rest.
  IssuedIo& taken = slots_[slot].io;
  taken.op = io.op;
  taken.zero_payload = io.zero_payload;
  taken.lane = static_cast<uint8_t>(options_.lane);
  taken.flags = io.flags;
  taken.target = io.target;
  taken.sequence = io.sequence;
  taken.ordinal = io.ordinal;
  taken.offset_bytes = io.offset_bytes;
  taken.bytes = io.bytes;
  taken.buffer = io.buffer;
  taken.due_ns = due_ns;
  if (held_ns_ > due_ns && held_ns_ > freed.ns) freed = {.ns = held_ns_, .by = held_by_};
  taken.freed_ns = freed.ns;
  taken.freed_by = freed.by;
  slots_[slot].gate = gate;
  const uint64_t order = slots_[slot].order = ++taken_;
  if (!gates_.empty() && io.gate_slot != kNoGateSlot) gates_[io.gate_slot].state = GateState::kOut;
  const bool conflicts = options_.order_overlaps &&
                         guard_.Conflicts(io.target, io.op, io.offset_bytes, io.bytes, order);
  if (options_.order_overlaps) {
    guard_.Add(slot, io.target, io.op, io.offset_bytes, io.bytes, order);
  }
  if (conflicts) {
    ++totals_.overlaps_ordered;
    parked_.push_back(slot);
    return;
  }
  Enqueue(slot);
}

// What waited for a conflicting I/O and need not any more.
void Issuer::TakeParked() {
  size_t kept = 0;
  parked_ready_ = false;
  for (const uint32_t slot : parked_) {
    IssuedIo& io = slots_[slot].io;
    if (guard_.Conflicts(io.target, io.op, io.offset_bytes, io.bytes, slots_[slot].order)) {
      parked_[kept++] = slot;
    } else if (batch_.size() >= options_.batch) {
      parked_[kept++] = slot;
      parked_ready_ = true;
    } else {
      Enqueue(slot);
    }
  }
  parked_.resize(kept);
}

void Issuer::TakeNew(int64_t now_ns) {
  next_due_ns_.reset();
  starving_ = false;
  // Where another lane has ended, what the step at the front waits for may never come.
  if (options_.duration_ns && now_ns > start_ns_ + *options_.duration_ns) {
    ended_ = true;
    return;
  }
  while (batch_.size() < options_.batch) {
    PlannedIo* io = nullptr;
    const PlanFeed::State state = feed_->Peek(&io);
    if (state == PlanFeed::State::kEnd) {
      ended_ = true;
      return;
    }
    if (state == PlanFeed::State::kNotYet) {
      starving_ = true;
      front_blocked_ = front_blocked_ || feed_->WantsMemory();
      return;
    }
    if (io->kind == PlannedIo::Kind::kAwait) {
      if (!LaneHasCome(*io)) {
        starving_ = true;
        front_blocked_ = true;
        return;
      }
      // The other lane's completion is not known here to the moment.
      if (front_blocked_ && now_ns >= booked_ns_) {
        booked_ns_ = now_ns;
        booked_by_ = io->sequence;
      }
      ++totals_.overlaps_ordered;
      feed_->Pop();
      continue;
    }
    if (front_blocked_) {
      freed_ns_ = booked_ns_;
      freed_by_ = booked_by_;
      front_blocked_ = false;
    }
    if (!required_seen_) {
      Require(*io);
      required_seen_ = true;
    }
    if (io->kind == PlannedIo::Kind::kGates) {
      feed_->Pop();
      required_seen_ = false;
      continue;
    }
    const Gated gated = GateOf(*io);
    if (!gated.open) return;
    if (options_.duration_ns && gated.due_ns > start_ns_ + *options_.duration_ns) {
      ended_ = true;
      return;
    }
    if (gated.due_ns > now_ns) {
      next_due_ns_ = gated.due_ns;
      return;
    }
    if (free_slots_.empty()) return;
    Take(*io, gated.due_ns, {.ns = freed_ns_, .by = freed_by_}, GatedQueue::kNoGate);
    feed_->Pop();
    required_seen_ = false;
  }
}

// What is due in the queue.
void Issuer::TakeGated(int64_t now_ns) {
  next_due_ns_.reset();
  while (queue_->NextDueNs() <= now_ns) {
    if (batch_.size() >= options_.batch) return;
    if (free_slots_.empty()) {
      slots_blocked_ = true;
      return;
    }
    const GatedQueue::Taken taken = queue_->Take();
    Freed freed{.ns = taken.freed_ns};
    if (slots_blocked_ && booked_ns_ > freed.ns) freed.ns = booked_ns_;
    Take(taken.io, taken.due_ns, freed, taken.gate);
  }
  slots_blocked_ = false;
  if (queue_->NextDueNs() != INT64_MAX) next_due_ns_ = queue_->NextDueNs();
}

// Takes steps of the plan into the queue, as far as there is room.
void Issuer::FillQueue() {
  more_steps_ = false;
  starving_ = false;
  for (int steps = 0; queue_->HasRoom(); ++steps) {
    if (steps == kStepsATurn) {
      more_steps_ = true;
      return;
    }
    PlannedIo* io = nullptr;
    const PlanFeed::State state = feed_->Peek(&io);
    if (state == PlanFeed::State::kEnd) {
      ended_ = queue_->size() == 0;
      return;
    }
    if (state == PlanFeed::State::kNotYet) {
      front_blocked_ = front_blocked_ || feed_->WantsMemory();
      starving_ = front_blocked_ || queue_->NextDueNs() == INT64_MAX;
      return;
    }
    if (front_blocked_) {
      freed_ns_ = booked_ns_;
      freed_by_ = booked_by_;
      front_blocked_ = false;
    }
    queue_->Add(*io, freed_ns_);
    feed_->Pop();
  }
  front_blocked_ = true;
}

// kClosed.
void Issuer::TakeClosed(int64_t now_ns) {
  if (options_.duration_ns && now_ns > start_ns_ + *options_.duration_ns) {
    next_due_ns_.reset();
    starving_ = more_steps_ = false;
    ended_ = true;
    return;
  }
  TakeGated(now_ns);
  FillQueue();
  if (batch_.empty()) TakeGated(now_ns);
}

// Puts what is due into the batch.
void Issuer::TakeDue(int64_t now_ns) {
  if (stopping_) return;
  if (parked_ready_) TakeParked();
  if (ended_) return;
  if (queue_) {
    TakeClosed(now_ns);
  } else {
    TakeNew(now_ns);
  }
}

// The CPU can be taken from the thread within a submission. Whether the drive had the request by
// then nobody can tell: so that no stop of the host becomes the drive's service time, the stamp is
// that of the end, unless the drive was done before. At full speed a long call is mostly work.
void Issuer::MarkStalledSubmission(Side* side, size_t first, size_t count, int64_t begin_ns) {
  if (!IsPunctual(options_.rule)) {
    side->looked_ns = side->read_ns = clock_->NowNs();
    return;
  }
  const int64_t end_ns = clock_->NowNs();
  side->read_ns = end_ns;
  if (end_ns - begin_ns <= kStalledNs) return;
  for (size_t i = first; i < first + count; ++i) {
    Slot& slot = slots_[batch_slots_[i]];
    slot.submit_begin_ns = begin_ns;
    slot.io.issue_ns = end_ns;
  }
  totals_.stalled_submissions += count;
}

Status Issuer::SubmitBatch(Side* side) {
  size_t done = 0;
  while (done < batch_.size()) {
    const int64_t now_ns = clock_->NowNs();
    for (size_t i = done; i < batch_.size(); ++i) {
      Slot& slot = slots_[batch_slots_[i]];
      slot.io.issue_ns = slot.submit_begin_ns = now_ns;
      slot.looks = side->looks;
    }
    ASSIGN_OR_RETURN(const size_t taken,
                     side->engine->Submit(std::span<const EngineRequest>(batch_).subspan(done)));
    MarkStalledSubmission(side, done, taken, now_ns);
    int64_t lateness_max_ns = 0;
    for (size_t i = done; i < done + taken; ++i) {
      const Slot& slot = slots_[batch_slots_[i]];
      lateness_max_ns = std::max(lateness_max_ns, slot.io.issue_ns - slot.io.due_ns);
      counters_->offset_ns.store(slot.offset_ns, std::memory_order_relaxed);
    }
    counters_->issued.store(counters_->issued.load(std::memory_order_relaxed) + taken,
                            std::memory_order_relaxed);
    if (lateness_max_ns > counters_->lateness_max_ns.load(std::memory_order_relaxed)) {
      counters_->lateness_max_ns.store(lateness_max_ns, std::memory_order_relaxed);
    }
    done += taken;
    if (done < batch_.size()) {
      // The engine is full though slots are not: it waits for completions of its own accord.
      BLKTAPE_CHECK(side->engine->in_flight() > 0);
      RETURN_IF_ERROR(Reap(side, kForever));
      BookCompletions(side);
    }
  }
  side->poll_until_ns = slots_[batch_slots_.back()].io.issue_ns + options_.poll_ns;
  batch_.clear();
  batch_slots_.clear();
  return OkStatus();
}

int64_t Issuer::SpinNs() const {
  return first_.engine->in_flight() == 0 ? spin_.ns()
                                         : std::min(options_.spin_ns, options_.spin_in_flight_ns);
}

// Nothing could be issued: how to wait until that may have changed.
Issuer::Pause Issuer::PlanPause(int64_t now_ns) const {
  const bool nothing_out = first_.engine->in_flight() == 0;
  Pause pause{.until_ns = options_.spin_ns == 0 ? kForever : now_ns + kStopPollNs};
  if (!stopping_) {
    if (starving_) pause.until_ns = now_ns + kFeedPollNs;
    if (next_due_ns_) {
      pause.due_ns = *next_due_ns_;
      int64_t wake_ns = pause.due_ns - SpinNs();
      if (wake_ns - now_ns > kShortSleepNs) wake_ns -= kShortSleepNs;
      pause.until_ns = std::min(pause.until_ns, wake_ns);
    }
  }
  // What the thread in reserve has out it books in its own time.
  if (nothing_out && InFlight() > 0) {
    pause.until_ns = std::min(pause.until_ns, now_ns + kFeedPollNs);
  }
  if (pause.until_ns <= now_ns) {
    pause.polls = true;
    pause.until_ns = pause.due_ns;
  } else if (!nothing_out && now_ns < first_.poll_until_ns) {
    pause.polls = true;
    pause.until_ns = std::min(pause.until_ns, first_.poll_until_ns);
  }
  return pause;
}

// In a round of polling with nothing out.
Status Issuer::Rehearse(const Pause& pause, int64_t now_ns) {
  return pause.until_ns - now_ns > kRehearsalNs ? first_.engine->Rehearse() : OkStatus();
}

Status Issuer::Wait(const Pause& pause, int64_t now_ns) {
  if (pause.polls) {
    const bool nothing_out = first_.engine->in_flight() == 0;
    // Alone, the caller's loop comes round at once and looks at everything.
    if (!options_.has_reserve) return nothing_out ? Rehearse(pause, now_ns) : OkStatus();
    int64_t polled_ns = now_ns;
    while (first_.completed == 0 && polled_ns < pause.until_ns) {
      turn_.Beat();
      RETURN_IF_ERROR(nothing_out ? Rehearse(pause, polled_ns) : Reap(&first_, INT64_MIN));
      polled_ns = first_.read_ns = clock_->NowNs();
    }
    window_idle_ns_ += polled_ns - now_ns;
    turn_ns_ = polled_ns;
    return OkStatus();
  }
  if (first_.engine->in_flight() > 0) {
    RETURN_IF_ERROR(Reap(&first_, pause.until_ns));
    // What woke it was not work: the wait was idle time.
    const int64_t woken_ns = first_.read_ns = clock_->NowNs();
    if (first_.completed == 0) {
      first_.looked_ns = woken_ns;
      totals_.wake_ups.Add(woken_ns - pause.until_ns);
    }
    slept_ns_ += woken_ns - now_ns;
    window_idle_ns_ += woken_ns - now_ns;
    turn_ns_ = woken_ns;
    return OkStatus();
  }
  BLKTAPE_CHECK(pause.until_ns != kForever);
  clock_->SleepUntilNs(pause.until_ns);
  slept_ns_ += pause.until_ns - now_ns;
  if (pause.due_ns != Turn::kNothing && options_.spin_ns > 0) {
    const int64_t woken_ns = clock_->NowNs();
    totals_.wake_ups.Add(woken_ns - pause.until_ns);
    spin_.Woke(pause.due_ns - spin_.ns(), woken_ns);
  }
  return OkStatus();
}

// Every tenth of a second: whether the thread ever slept in it.
void Issuer::CountSleep(int64_t now_ns) {
  const int64_t length_ns = now_ns - sleep_window_start_ns_;
  if (!options_.on_saturation || length_ns < kSleepWindowNs) return;
  const bool saturated = slept_ns_ < length_ns / 20;
  if (saturated != saturated_) options_.on_saturation(saturated);
  saturated_ = saturated;
  sleep_window_start_ns_ = now_ns;
  slept_ns_ = 0;
}

// Books the turn that just ended as work or as waiting, second by second.
void Issuer::CountTime(int64_t now_ns) {
  if (!turn_worked_) window_idle_ns_ += now_ns - turn_ns_;
  turn_ns_ = now_ns;
  turn_worked_ = false;
  const int64_t length_ns = now_ns - window_start_ns_;
  if (length_ns < kNanosPerSecond) return;
  const double share = 1.0 - static_cast<double>(window_idle_ns_) / static_cast<double>(length_ns);
  totals_.busy_share_max = window_whole_ ? std::max(totals_.busy_share_max, share) : share;
  window_whole_ = true;
  window_start_ns_ = now_ns;
  window_idle_ns_ = 0;
}

Status Issuer::Run(int64_t start_ns) {
  start_ns_ = start_ns;
  if (queue_) queue_->Start(start_ns);
  gate_open_ns_ = start_ns;
  totals_.first_due_ns = start_ns;
  totals_.last_complete_ns = start_ns;
  for (freed_count_ = 0; freed_count_ < slot_freed_ns_.size(); ++freed_count_) {
    slot_freed_ns_[freed_count_] = start_ns;
  }
  turn_ns_ = window_start_ns_ = sleep_window_start_ns_ = clock_->NowNs();
  const Status worked = Work();
  run_ended_.store(true, std::memory_order_release);
  RETURN_IF_ERROR(worked);
  const int64_t now_ns = clock_->NowNs();
  CountTime(now_ns);
  if (!window_whole_ && now_ns > window_start_ns_) {
    totals_.busy_share_max =
        1.0 - static_cast<double>(window_idle_ns_) / static_cast<double>(now_ns - window_start_ns_);
  }
  return OkStatus();
}

// Ends in its turn, which nobody gets again.
Status Issuer::Work() {
  while (true) {
    if (first_.completed == 0 && first_.engine->in_flight() > 0) {
      RETURN_IF_ERROR(Reap(&first_, INT64_MIN));
    }
    if (options_.has_reserve) {
      turn_.Take();
      if (reserve_failed_.load(std::memory_order_acquire)) return reserve_status_;
    }
    if (BookCompletions(&first_)) turn_worked_ = true;
    const int64_t now_ns = first_.read_ns = clock_->NowNs();
    CountTime(now_ns);
    CountSleep(now_ns);
    if (stop_.by_user->load(std::memory_order_relaxed)) StopEarly("interrupted");
    if (stop_.by_failure != nullptr && stop_.by_failure->load(std::memory_order_relaxed)) {
      StopEarly("the result could not be written");
    }
    if (stop_.by_lane != nullptr && stop_.by_lane->load(std::memory_order_relaxed)) {
      StopEarly(kStoppedByLane);
    }
    TakeDue(now_ns);
    counters_->in_flight.store(InFlight(), std::memory_order_relaxed);
    if (!batch_.empty()) {
      RETURN_IF_ERROR(SubmitBatch(&first_));
      turn_worked_ = true;
      if (options_.has_reserve) turn_.GiveBack(NextDueNs());
      continue;
    }
    if (InFlight() == 0 && (stopping_ || (ended_ && parked_.empty()))) return OkStatus();
    if (more_steps_ && !stopping_) continue;
    const Pause pause = PlanPause(now_ns);
    if (options_.has_reserve) turn_.GiveBack(pause.due_ns);
    RETURN_IF_ERROR(Wait(pause, now_ns));
  }
}

void Issuer::FailReserve(const Status& status) {
  reserve_status_ = status;
  reserve_failed_.store(true, std::memory_order_release);
}

void Issuer::StandBy(Engine* engine) {
  Side side(engine, options_.depth);
  // What an engine does at its first use is not for a turn.
  if (const Status ready = Reap(&side, INT64_MIN); !ready.ok()) return FailReserve(ready);
  bool relieves = false;
  uint64_t beat = 0;                 // of the first thread when it was found to be held up
  int64_t next_ns = Turn::kNothing;  // while this one relieves it: the next due time
  while (!run_ended_.load(std::memory_order_acquire)) {
    int64_t now_ns = side.read_ns = clock_->NowNs();
    const int64_t wake_ns =
        relieves ? next_ns - options_.spin_in_flight_ns : now_ns + kReserveSleepNs;
    if (side.completed == 0 && engine->in_flight() > 0) {
      const Status reaped = Reap(&side, wake_ns);
      if (!reaped.ok()) return FailReserve(reaped);
    } else if (relieves && wake_ns > now_ns) {
      clock_->SleepUntilNs(wake_ns);
    }
    now_ns = side.read_ns = clock_->NowNs();
    if (side.completed == 0) side.looked_ns = now_ns;
    relieves = relieves && turn_.beat() == beat;
    if (relieves || side.completed > 0) {
      if (!turn_.TryTake()) {
        clock_->SleepUntilNs(now_ns + kTurnRetryNs);
        continue;
      }
      BookCompletions(&side);
      if (relieves) {
        const Result<bool> issued = IssueInReserve(&side, now_ns);
        if (!issued.ok()) FailReserve(issued.status());
        next_ns = NextDueNs();
        relieves = !stopping_ && next_ns < now_ns + kReserveSleepNs;
        turn_.GiveBack(next_ns);
        if (!issued.ok()) return;
        // What is due and cannot go waits for a completion: not at the cost of those who bring it.
        if (!*issued) {
          next_ns = std::max(next_ns, now_ns + options_.spin_in_flight_ns + kTurnRetryNs);
        }
      } else {
        turn_.GiveBack();
      }
      continue;
    }
    if (engine->in_flight() > 0) continue;
    const int64_t awaited_ns = turn_.awaited_ns();
    if (awaited_ns != Turn::kNothing && now_ns >= awaited_ns + kOverdueNs) {
      beat = turn_.beat();
      next_ns = awaited_ns;
      relieves = true;
      continue;
    }
    int64_t until_ns = now_ns + kReserveSleepNs;
    if (awaited_ns != Turn::kNothing) until_ns = std::min(until_ns, awaited_ns + kLookAfterNs);
    clock_->SleepUntilNs(std::max(until_ns, now_ns + kLookEveryNs));
  }
}

// In a turn, kTimed: of the step at the front, if there is one already.
int64_t Issuer::NextDueNs() {
  PlannedIo* io = nullptr;
  const bool known = !ended_ && feed_->Peek(&io) == PlanFeed::State::kReady;
  return known ? start_ns_ + io->offset_ns : Turn::kNothing;
}

// Whether there was something to issue.
Result<bool> Issuer::IssueInReserve(Side* side, int64_t now_ns) {
  TakeDue(now_ns);
  if (batch_.empty()) return false;
  *totals_.issued_by_reserve += batch_.size();
  RETURN_IF_ERROR(SubmitBatch(side));
  return true;
}

}  // namespace blktape
