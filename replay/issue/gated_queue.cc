#include "replay/issue/gated_queue.h"

#include <algorithm>

#include "base/check.h"

namespace blktape {

GatedQueue::GatedQueue(uint32_t capacity, uint32_t out)
    : entries_(capacity + 1),
      chains_(kMaxChains),
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
  free_waiters_ = static_cast<uint32_t>(waiters_.size());
  ready_.reserve(capacity + 1);
}

void GatedQueue::Start(int64_t start_ns) {
  start_ns_ = start_ns;
  for (Chain& chain : chains_) chain.opens_ns = chain.due_ns = start_ns;
}

bool GatedQueue::HasRoom() const {
  return held_ + 1 < entries_.size() && free_waiters_ >= PlannedIo::kMaxRequired;
}

// The plan gives a slot to another I/O while the former owner may still be out: so a name is looked
// up when the step comes, in the order of the plan.
void GatedQueue::Require(uint32_t entry, uint32_t slot) {
  const uint32_t named = gate_of_slot_[slot];
  if (named == kNone) return;
  Gate& gate = gates_[named];
  if (gate.done) {
    entries_[entry].opens_ns = std::max(entries_[entry].opens_ns, gate.complete_ns);
    return;
  }
  const uint32_t waiter = free_waiter_;
  BLKTAPE_CHECK(waiter != kNone);
  free_waiter_ = waiters_[waiter].next;
  --free_waiters_;
  waiters_[waiter] = {.entry = entry, .next = gate.waiters};
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
  gates_[gate] = {.named = true};
  gate_of_slot_[slot] = gate;
  entries_[entry].gate = gate;
}

void GatedQueue::FreeGate(uint32_t gate) {
  gates_[gate].next = free_gate_;
  free_gate_ = gate;
}

void GatedQueue::Add(const PlannedIo& step, int64_t freed_ns) {
  if (partial_ == kNone) {
    partial_ = free_entry_;
    BLKTAPE_CHECK(partial_ != kNone);
    free_entry_ = entries_[partial_].next;
    Entry& entry = entries_[partial_];
    entry.opens_ns = start_ns_;
    entry.waits = 0;
    entry.next = kNone;
    entry.gate = kNone;
  }
  for (int i = 0; i < step.required_count; ++i) Require(partial_, step.required[i]);
  if (step.kind == PlannedIo::Kind::kGates) return;
  const uint32_t added = partial_;
  partial_ = kNone;
  Entry& entry = entries_[added];
  entry.io = step;
  entry.freed_ns = freed_ns;
  if (step.gate_slot != kNoGateSlot) NameGate(added, step.gate_slot);
  ++held_;
  Chain& chain = chains_[step.chain];
  (chain.first == kNone ? chain.first : entries_[chain.last].next) = added;
  chain.last = added;
  LookAt(&chain);
}

void GatedQueue::LookAt(Chain* chain) {
  if (chain->ready || chain->first == kNone) return;
  const Entry& entry = entries_[chain->first];
  if (entry.waits > 0) return;
  chain->opens_ns = std::max(chain->opens_ns, entry.opens_ns);
  chain->due_ns = std::max(chain->due_ns, chain->opens_ns + entry.io.offset_ns);
  chain->ready = true;
  ready_.push_back({chain->due_ns, entry.io.sequence, chain->first});
  std::push_heap(ready_.begin(), ready_.end());
}

GatedQueue::Taken GatedQueue::Take() {
  std::pop_heap(ready_.begin(), ready_.end());
  const Ready ready = ready_.back();
  ready_.pop_back();
  Entry& entry = entries_[ready.entry];
  const Taken taken{
      .io = entry.io, .due_ns = ready.due_ns, .freed_ns = entry.freed_ns, .gate = entry.gate};
  Chain& chain = chains_[entry.io.chain];
  chain.first = entry.next;
  if (chain.first == kNone) chain.last = kNone;
  chain.ready = false;
  entry.next = free_entry_;
  free_entry_ = ready.entry;
  --held_;
  LookAt(&chain);
  return taken;
}

void GatedQueue::Complete(uint32_t gate, int64_t complete_ns) {
  if (gate == kNoGate) return;
  Gate& done = gates_[gate];
  done.done = true;
  done.complete_ns = complete_ns;
  uint32_t waiter = done.waiters;
  done.waiters = kNone;
  while (waiter != kNone) {
    const Waiter one = waiters_[waiter];
    waiters_[waiter].next = free_waiter_;
    free_waiter_ = waiter;
    ++free_waiters_;
    Entry& entry = entries_[one.entry];
    entry.opens_ns = std::max(entry.opens_ns, complete_ns);
    // A step that is not whole yet belongs to no chain.
    if (--entry.waits == 0 && one.entry != partial_) LookAt(&chains_[entry.io.chain]);
    waiter = one.next;
  }
  if (!done.named) FreeGate(gate);
}

}  // namespace blktape
