#include "capture/assemble/arrival_queue.h"

namespace blktape {

ArrivalQueue::Ticket ArrivalQueue::Take(int64_t arrival_ns) {
  slots_.push_back({.arrival_ns = arrival_ns, .open = 1});
  return base_ + slots_.size() - 1;
}

void ArrivalQueue::Share(Ticket ticket) {
  if (ticket >= base_) ++slots_[ticket - base_].open;
}

void ArrivalQueue::Close(Ticket ticket) {
  if (ticket >= base_) --slots_[ticket - base_].open;
}

void ArrivalQueue::Close(Ticket ticket, const FinishedIo& io) {
  if (ticket < base_) {
    ++late_;
    leave_(io);
    return;
  }
  uint32_t index = free_;
  if (index == kNone) {
    index = static_cast<uint32_t>(nodes_.size());
    nodes_.emplace_back();
  } else {
    free_ = nodes_[index].next;
  }
  nodes_[index] = {io, kNone};
  Slot& slot = slots_[ticket - base_];
  (slot.first == kNone ? slot.first : nodes_[slot.last].next) = index;
  slot.last = index;
  --slot.open;
}

void ArrivalQueue::LeaveFront() {
  uint32_t index = slots_.front().first;
  slots_.pop_front();
  ++base_;
  while (index != kNone) {
    leave_(nodes_[index].io);
    const uint32_t next = nodes_[index].next;
    nodes_[index].next = free_;
    free_ = index;
    index = next;
  }
}

void ArrivalQueue::Drain(int64_t now_ns) {
  while (!slots_.empty()) {
    const Slot& front = slots_.front();
    const bool held_too_long =
        now_ns - front.arrival_ns > hold_ns_ || slots_.size() > hold_records_;
    if (front.open > 0 && !held_too_long) return;
    LeaveFront();
  }
}

void ArrivalQueue::DrainAll() {
  while (!slots_.empty()) LeaveFront();
}

}  // namespace blktape
