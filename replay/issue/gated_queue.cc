#include "replay/issue/gated_queue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace blktape {

std::array<uint32_t, Dependencies::kMaxCopies> GatedQueue::Journal::AllNone() {
  std::array<uint32_t, Dependencies::kMaxCopies> all;
  all.fill(kNone);
  return all;
}

GatedQueue::GatedQueue(uint32_t capacity, uint32_t out)
    : entries_(capacity + 1),
      chains_(kMaxChains + capacity + Dependencies::kMaxCopies),
      copies_(capacity + Dependencies::kMaxCopies),
      journals_(kMaxChains),
      gates_(kMaxGateSlots + capacity + 1 + out),
      // Each I/O not complete may be waited for by all of one step, however many it names.
      waiters_(2 * (size_t{capacity} + out) + PlannedIo::kMaxRequired),
      gate_of_slot_(kMaxGateSlots, kNone) {
  const auto link = [](auto* all, uint32_t* first) {
    for (uint32_t i = static_cast<uint32_t>(all->size()); i > 0; --i) {
      (*all)[i - 1].next = *first;
      *first = i - 1;
    }
  };
  link(&entries_, &free_entry_);
  link(&gates_, &free_gate_);
  link(&waiters_, &free_waiter_);
  link(&copies_, &free_copy_);
  free_waiters_ = static_cast<uint32_t>(waiters_.size());
  ready_.reserve(capacity + 1);
}

void GatedQueue::Start(int64_t start_ns) {
  start_ = Moment::At(start_ns);
  for (Chain& chain : chains_) {
    chain.opens = start_;
    chain.due_ns = start_ns;
  }
}

bool GatedQueue::HasRoom() const {
  return held_ + 1 < entries_.size() && free_waiters_ >= PlannedIo::kMaxRequired &&
         free_copy_ != kNone;
}

// The plan gives a slot to another I/O while the former owner may still be out: so a name is looked
// up when the step comes, in the order of the plan.
void GatedQueue::Require(uint32_t entry, uint32_t slot) {
  const uint32_t named = gate_of_slot_[slot & ~Dependencies::kFlags];
  if (named == kNone) return;
  Gate& gate = gates_[named];
  if ((slot & Dependencies::kWhileWriting) != 0) {
    Entry& waits = entries_[entry];
    if ((slot & Dependencies::kAfterThink) != 0) {
      waits.after_think = gate.journal;
      return;
    }
    waits.before_think = gate.journal;
    waits.to_the_end = (slot & Dependencies::kToTheEnd) != 0;
    waits.and_the_next = (slot & Dependencies::kAndTheNext) != 0;
    return;
  }
  const bool if_left_out = (slot & Dependencies::kIfLeftOut) != 0;
  if (gate.done) {
    entries_[entry].opens.Delay(gate.complete);
    if (if_left_out) entries_[entry].unneeded = !gate.left_out;
    return;
  }
  const uint32_t waiter = free_waiter_;
  BLKTAPE_CHECK(waiter != kNone);
  free_waiter_ = waiters_[waiter].next;
  --free_waiters_;
  waiters_[waiter] = {.entry = entry, .next = gate.waiters, .if_left_out = if_left_out};
  gate.waiters = waiter;
  ++entries_[entry].waits;
}

void GatedQueue::NameGate(uint32_t entry, uint32_t slot) {
  const uint32_t gate = free_gate_;
  BLKTAPE_CHECK(gate != kNone);
  free_gate_ = gates_[gate].next;
  const uint32_t former = gate_of_slot_[slot];
  if (former != kNone) {
    gates_[former].named = false;
    if (gates_[former].done) FreeGate(former);
  }
  const PlannedIo& io = entries_[entry].io;
  const bool of_commit = io.commit_part != Dependencies::CommitPart::kNone;
  gates_[gate] = {.host_ns = io.host_ns, .journal = of_commit ? io.chain : kNone, .named = true};
  gate_of_slot_[slot] = gate;
  entries_[entry].gate = gate;
}

void GatedQueue::FreeGate(uint32_t gate) {
  gates_[gate].next = free_gate_;
  free_gate_ = gate;
}

void GatedQueue::FreeEntry(uint32_t entry) {
  entries_[entry].next = free_entry_;
  free_entry_ = entry;
  --held_;
}

void GatedQueue::Add(const PlannedIo& step, int64_t freed_ns) {
  if (partial_ == kNone) {
    partial_ = free_entry_;
    BLKTAPE_CHECK(partial_ != kNone);
    free_entry_ = entries_[partial_].next;
    Entry& entry = entries_[partial_];
    entry.before_think = entry.after_think = kNone;
    entry.to_the_end = entry.and_the_next = false;
    entry.unneeded = entry.left_out = entry.retired = false;
    entry.opens = start_;
    entry.waits = 0;
    entry.next = kNone;
    entry.gate = kNone;
  }
  for (int i = 0; i < step.required_count; ++i) Require(partial_, step.required[i]);
  if (step.kind == PlannedIo::Kind::kGates) return;
  const uint32_t added = partial_;
  partial_ = kNone;
  ++held_;
  Entry& entry = entries_[added];
  entry.io = step;
  entry.freed_ns = freed_ns;
  entry.chain = ChainFor(step);
  if (step.gate_slot != kNoGateSlot) NameGate(added, step.gate_slot);
  if (entry.chain == kNone) {
    Moment rests = start_;
    rests.Delay(journals_[step.chain].rests_since);
    LeaveOut(added, rests);
    return;
  }
  Copy* const copy = CopyOf(entry.chain);
  const uint32_t chain_number = entry.chain;
  if (copy != nullptr) {
    ++copy->undone;
    if (entry.gate != kNone) gates_[entry.gate].copy = entry.chain - kMaxChains;
  }
  if (copy != nullptr && copy->state == Copy::State::kLeftOut) {
    LeaveOut(added, copy->end);
  } else {
    Chain& chain = chains_[chain_number];
    (chain.first == kNone ? chain.first : entries_[chain.last].next) = added;
    chain.last = added;
    LookAt(chain_number);
  }
  if (copy != nullptr && Dependencies::Ends(step.commit_part)) {
    End(chain_number - kMaxChains);
  }
  Settle();
}

// None: not needed, as it is another copy of what belongs to no commit that is known.
uint32_t GatedQueue::ChainFor(const PlannedIo& step) {
  if (step.commit_part == Dependencies::CommitPart::kNone) return step.chain;
  if (Dependencies::Begins(step.commit_part)) {
    return kMaxChains + Begin(step);
  }
  const uint32_t coming = journals_[step.chain].coming[step.commit_copy];
  if (coming != kNone) return kMaxChains + coming;
  return step.commit_copy == 0 ? step.chain : kNone;
}

uint32_t GatedQueue::Begin(const PlannedIo& step) {
  Journal& journal = journals_[step.chain];
  if (step.commit_copy == 0) EndComing(&journal, {});
  uint32_t& coming = journal.coming[step.commit_copy];
  coming = free_copy_;
  BLKTAPE_CHECK(coming != kNone);
  free_copy_ = copies_[coming].next;
  copies_[coming] = {.asked = step.asked,
                     .writes = step.commit_part == Dependencies::CommitPart::kBegins,
                     .number = step.commit_copy,
                     .journal = step.chain};
  chains_[kMaxChains + coming] = {.opens = start_, .due_ns = start_.ns};
  if (step.asked && step.commit_copy == 0) ++commits_.recorded;
  return coming;
}

// No more I/Os of it come.
void GatedQueue::End(uint32_t number) {
  Copy& copy = copies_[number];
  copy.whole = true;
  journals_[copy.journal].coming[copy.number] = kNone;
  if (copy.undone == 0) Finish(number);
}

void GatedQueue::DidOneOf(uint32_t number) {
  Copy& copy = copies_[number];
  if (--copy.undone == 0 && copy.whole) Finish(number);
}

void GatedQueue::Finish(uint32_t number) {
  Copy& copy = copies_[number];
  const bool ran = copy.state == Copy::State::kRuns;
  copy.next = free_copy_;
  free_copy_ = number;
  if (ran) Rest(&journals_[copy.journal], copy.end);
}

// Its gates are complete.
void GatedQueue::Ask(uint32_t number) {
  Copy& copy = copies_[number];
  Journal& journal = journals_[copy.journal];
  copy.state = Copy::State::kAsks;
  copy.next = journal.asking;
  journal.asking = number;
  if (journal.running == kNone) PushReady(kMaxChains + number, journal.rests_since);
}

// It begins when it is due. Who asked by then is served by it, the others ask again when it is
// over.
void GatedQueue::Run(uint32_t number, const Ready& ready) {
  Copy& copy = copies_[number];
  Journal& journal = journals_[copy.journal];
  Chain& own = chains_[kMaxChains + number];
  own.opens.Delay(journal.rests_since);
  copy.state = Copy::State::kRuns;
  if (copy.asked) ++commits_.written;
  journal.running = number;
  journal.writing = copy.writes;
  if (!copy.writes) UnparkLater(&journal, ready);
  uint32_t asking = journal.asking;
  journal.asking = kNone;
  bool others = false;
  while (asking != kNone) {
    Copy& other = copies_[asking];
    Chain& chain = chains_[kMaxChains + asking];
    const uint32_t next = other.next;
    if (asking != number) {
      others = true;
      chain.ready = false;
      const bool joins = other.asked && chain.opens.ns <= ready.due_ns;
      uint32_t& list = joins ? journal.joining : journal.asking;
      if (joins) other.state = Copy::State::kJoins;
      other.next = list;
      list = asking;
    }
    asking = next;
  }
  if (!others) return;
  std::erase_if(ready_,
                [this](const Ready& ready) { return !chains_[entries_[ready.entry].chain].ready; });
  std::make_heap(ready_.begin(), ready_.end());
}

// A commit of one write begins, for which nobody waits who has thought. Who was parked for another
// one, which asked, and is due after this one begins, is due again.
void GatedQueue::UnparkLater(Journal* journal, const Ready& than) {
  uint32_t parked = std::exchange(journal->parked, kNone);
  while (parked != kNone) {
    Chain& chain = chains_[parked];
    const uint32_t number = std::exchange(parked, chain.next_parked);
    const bool has_thought = entries_[chain.first].before_think == kNone;
    if (has_thought && ReadyOf(chain) < than) {
      chain.parked = false;
      PushDue(number);
    } else {
      Park(number, journal);
    }
  }
}

// The commit that ran is complete.
void GatedQueue::Rest(Journal* journal, const Moment& now) {
  journal->running = kNone;
  journal->rests_since = now;
  uint32_t joining = std::exchange(journal->joining, kNone);
  for (uint32_t asks = journal->asking; asks != kNone; asks = copies_[asks].next) {
    PushReady(kMaxChains + asks, now);
  }
  // Some may have waited for one that asked and now joins.
  Wrote(journal, now, /*to_the_end=*/true);
  while (joining != kNone) {
    const uint32_t next = copies_[joining].next;
    LeaveOutCopy(joining, now);
    joining = next;
  }
}

// Whether it writes, or will at once, what comes before a commit record, or that, too.
bool GatedQueue::IsWriting(const Journal& journal, bool to_the_end) const {
  if (journal.running != kNone) return journal.writing || to_the_end;
  for (uint32_t asks = journal.asking; asks != kNone; asks = copies_[asks].next) {
    if (copies_[asks].asked && (copies_[asks].writes || to_the_end)) return true;
  }
  return false;
}

void GatedQueue::Wrote(Journal* journal, const Moment& now, bool to_the_end) {
  journal->writing = false;
  uint32_t parked = std::exchange(journal->parked, kNone);
  while (parked != kNone) {
    Chain& chain = chains_[parked];
    const uint32_t number = std::exchange(parked, chain.next_parked);
    Entry& first = entries_[chain.first];
    if (first.to_the_end && !to_the_end) {
      Park(number, journal);
      continue;
    }
    chain.parked = false;
    if (first.before_think != kNone) {
      if (!first.and_the_next) first.before_think = kNone;
      first.to_the_end = first.and_the_next = false;
      first.opens.Delay(now);
      LookAt(number);
    } else {
      // It may be over before that: then another one may have begun when it is due.
      if (now.ns > chain.due_ns) {
        first.after_think = kNone;
        chain.meant_ns = now.ns + first.io.goes_on_ns;
        chain.due_ns = now.After(first.io.goes_on_ns);
      }
      PushDue(number);
    }
  }
}

void GatedQueue::LeaveOutCopy(uint32_t number, const Moment& now) {
  Copy& copy = copies_[number];
  copy.state = Copy::State::kLeftOut;
  copy.end = now;
  Chain& chain = chains_[kMaxChains + number];
  uint32_t entry = std::exchange(chain.first, kNone);
  chain.last = kNone;
  while (entry != kNone) {
    const uint32_t next = entries_[entry].next;
    LeaveOut(entry, now);
    entry = next;
  }
}

void GatedQueue::LeaveOut(uint32_t number, const Moment& now) {
  Entry& entry = entries_[number];
  entry.left_out = true;
  // A gate may still lead to it.
  if (entry.waits == 0) Retire(number);
  if (entry.gate == kNone) return;
  gates_[entry.gate].left_out = true;
  Open(entry.gate, now);
}

void GatedQueue::Retire(uint32_t number) {
  Entry& entry = entries_[number];
  entry.retired = true;
  entry.next = left_out_;
  left_out_ = number;
  if (entry.chain != kNone && CopyOf(entry.chain) != nullptr) DidOneOf(entry.chain - kMaxChains);
}

bool GatedQueue::TakeLeftOut(PlannedIo* io) {
  if (left_out_ == kNone) return false;
  const uint32_t taken = left_out_;
  left_out_ = entries_[taken].next;
  *io = entries_[taken].io;
  ++commits_.left_out;
  FreeEntry(taken);
  return true;
}

void GatedQueue::EndComing(Journal* journal, const Moment& now) {
  for (const uint32_t coming : journal->coming) {
    if (coming == kNone) continue;
    copies_[coming].end.Delay(now);
    End(coming);
  }
}

void GatedQueue::EndCommits(int64_t now_ns) {
  for (Journal& journal : journals_) EndComing(&journal, Moment::At(now_ns));
  Settle();
}

void GatedQueue::PushReady(uint32_t number, Moment opens) {
  Chain& chain = chains_[number];
  opens.Delay(chain.opens);
  const int64_t offset_ns = entries_[chain.first].io.offset_ns;
  chain.meant_ns = std::max(chain.due_ns, opens.ns + offset_ns);
  chain.due_ns = std::max(chain.due_ns, opens.After(offset_ns));
  PushDue(number);
}

GatedQueue::Ready GatedQueue::ReadyOf(const Chain& chain) const {
  return {chain.due_ns, chain.meant_ns, entries_[chain.first].io.sequence, chain.first};
}

void GatedQueue::PushDue(uint32_t number) {
  Chain& chain = chains_[number];
  chain.ready = true;
  ready_.push_back(ReadyOf(chain));
  std::push_heap(ready_.begin(), ready_.end());
}

void GatedQueue::Park(uint32_t number, Journal* journal) {
  chains_[number].parked = true;
  chains_[number].next_parked = journal->parked;
  journal->parked = number;
}

// What is due next may have to wait for what a journal writes by then.
void GatedQueue::Settle() {
  while (!ready_.empty()) {
    const Entry& entry = entries_[ready_.front().entry];
    if (entry.after_think == kNone) return;
    Journal& journal = journals_[entry.after_think];
    if (!IsWriting(journal, /*to_the_end=*/false)) return;
    std::pop_heap(ready_.begin(), ready_.end());
    ready_.pop_back();
    chains_[entry.chain].ready = false;
    Park(entry.chain, &journal);
  }
}

void GatedQueue::LookAt(uint32_t number) {
  Chain& chain = chains_[number];
  if (chain.ready || chain.parked || chain.first == kNone) return;
  Entry& entry = entries_[chain.first];
  if (entry.waits > 0) return;
  if (entry.before_think != kNone) {
    Journal& journal = journals_[entry.before_think];
    if (IsWriting(journal, entry.to_the_end)) return Park(number, &journal);
    entry.before_think = kNone;
    entry.to_the_end = entry.and_the_next = false;
  }
  chain.opens.Delay(entry.opens);
  if (entry.unneeded) {
    const uint32_t unneeded = std::exchange(chain.first, entry.next);
    if (chain.first == kNone) chain.last = kNone;
    LeaveOut(unneeded, chain.opens);
    LookAt(number);
    return;
  }
  Copy* const copy = CopyOf(number);
  if (copy != nullptr && copy->state == Copy::State::kWaits) {
    chain.opens.ns += entry.io.asks_after_ns;
    chain.opens.seen_ns = std::max(chain.opens.ns, chain.opens.seen_ns);
    Ask(number - kMaxChains);
    return;
  }
  if (copy != nullptr && copy->state != Copy::State::kRuns) return;
  Moment written = Moment::At(chain.due_ns);
  written.Delay(chain.opens);
  PushReady(number, chain.opens);
  if (copy != nullptr && entry.io.commit_part == Dependencies::CommitPart::kEnds) {
    Wrote(&journals_[copy->journal], written, /*to_the_end=*/false);
  }
}

GatedQueue::Taken GatedQueue::Take() {
  std::pop_heap(ready_.begin(), ready_.end());
  const Ready ready = ready_.back();
  ready_.pop_back();
  const Entry& entry = entries_[ready.entry];
  const uint32_t number = entry.chain;
  const Taken taken{
      .io = entry.io, .due_ns = ready.due_ns, .freed_ns = entry.freed_ns, .gate = entry.gate};
  Copy* const copy = CopyOf(number);
  if (copy != nullptr && copy->state == Copy::State::kAsks) Run(number - kMaxChains, ready);
  Chain& chain = chains_[number];
  chain.first = entry.next;
  if (chain.first == kNone) chain.last = kNone;
  chain.ready = false;
  FreeEntry(ready.entry);
  if (copy != nullptr && taken.gate == kNone) {
    copy->end.Delay(Moment::At(ready.due_ns));
    DidOneOf(number - kMaxChains);
  }
  LookAt(number);
  Settle();
  return taken;
}

void GatedQueue::Complete(uint32_t gate, int64_t seen_ns) {
  if (gate == kNoGate) return;
  const Moment complete{seen_ns - gates_[gate].host_ns, seen_ns};
  const uint32_t number = gates_[gate].copy;
  if (number != kNone) {
    Copy& copy = copies_[number];
    copy.end.Delay(complete);
    // Before those who wait for it: they may go on with what waits for the journal to rest.
    DidOneOf(number);
  }
  Open(gate, complete);
  Settle();
}

// Of what one waits for, something is complete.
void GatedQueue::MoveOn(uint32_t number) {
  const Entry& entry = entries_[number];
  // A step that is not whole yet belongs to no chain.
  if (entry.waits > 0 || number == partial_) return;
  if (!entry.left_out) {
    LookAt(entry.chain);
  } else if (!entry.retired) {
    Retire(number);
  }
}

void GatedQueue::Open(uint32_t gate, const Moment& complete) {
  Gate& done = gates_[gate];
  done.done = true;
  done.complete = complete;
  const uint32_t waiters = std::exchange(done.waiters, kNone);
  uint32_t last = kNone;
  for (uint32_t waiter = waiters; waiter != kNone; waiter = waiters_[waiter].next) {
    Entry& entry = entries_[waiters_[waiter].entry];
    entry.opens.Delay(complete);
    if (waiters_[waiter].if_left_out) entry.unneeded = !done.left_out;
    --entry.waits;
    if (Dependencies::Begins(entry.io.commit_part)) MoveOn(waiters_[waiter].entry);
    last = waiter;
  }
  // Who asks for a commit comes first, next who may through a flush that is not needed: others may
  // wait for what that writes.
  for (const bool if_left_out : {true, false}) {
    for (uint32_t waiter = waiters; waiter != kNone; waiter = waiters_[waiter].next) {
      const uint32_t entry = waiters_[waiter].entry;
      if (waiters_[waiter].if_left_out != if_left_out) continue;
      if (!Dependencies::Begins(entries_[entry].io.commit_part)) MoveOn(entry);
      ++free_waiters_;
    }
  }
  if (last != kNone) {
    waiters_[last].next = free_waiter_;
    free_waiter_ = waiters;
  }
  if (!gates_[gate].named) FreeGate(gate);
}

}  // namespace blktape
