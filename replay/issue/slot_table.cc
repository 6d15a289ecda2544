#include "replay/issue/slot_table.h"

#include <algorithm>
#include <atomic>

namespace blktape {

SlotTable::SlotTable(const IssuerOptions& options, IssueTotals* totals)
    : options_(options),
      totals_(totals),
      slots_(options.depth),
      guard_(options.depth),
      frontier_(options.depth) {
  free_.reserve(options.depth);
  for (uint32_t slot = options.depth; slot > 0; --slot) free_.push_back(slot - 1);
  parked_.reserve(options.depth);
  batch_.reserve(options.depth);
}

void SlotTable::Enqueue(uint32_t slot) {
  const IssuedIo& io = slots_[slot].io;
  const bool own_buffer =
      io.buffer == nullptr && io.op == Op::kRead && io.bytes <= options_.read_buffer_bytes;
  batch_.push_back({.tag = slot,
                    .target = io.target,
                    .op = io.op,
                    .flags = io.flags,
                    .offset_bytes = io.offset_bytes,
                    .bytes = io.bytes,
                    .buffer = own_buffer ? options_.read_buffers + options_.read_buffer_bytes * slot
                                         : io.buffer});
}

int64_t SlotTable::PauseNs(const Kind& kind, int64_t due_ns) {
  if (kind.out > 0) return 0;
  return kind.seen_ns ? std::max<int64_t>(0, due_ns - *kind.seen_ns) : INT64_MAX;
}

void SlotTable::Take(const PlannedIo& io, int64_t due_ns, Freed freed, uint32_t gate) {
  const uint32_t number = free_.back();
  free_.pop_back();
  if (!options_.lanes.empty()) frontier_.Take(number);
  Slot& slot = slots_[number];
  slot.offset_ns = io.offset_ns;
  slot.gate = gate;
  slot.order = ++taken_;
  // What the engine tells fills the rest.
  IssuedIo& taken = slot.io;
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
  if (held_.ns > due_ns && held_.ns > freed.ns) freed = held_;
  taken.freed_ns = freed.ns;
  taken.freed_by = freed.by;
  Kind& kind = KindOf(taken);
  taken.pause_ns = PauseNs(kind, due_ns);
  ++kind.out;
  if (options_.order_overlaps) {
    const bool conflicts =
        guard_.Conflicts(io.target, io.op, io.offset_bytes, io.bytes, slot.order);
    guard_.Add(number, io.target, io.op, io.offset_bytes, io.bytes, slot.order);
    if (conflicts) {
      ++totals_->overlaps_ordered;
      parked_.push_back(number);
      return;
    }
  }
  Enqueue(number);
}

void SlotTable::TakeParked() {
  if (!parked_ready_) return;
  parked_ready_ = false;
  size_t kept = 0;
  for (const uint32_t slot : parked_) {
    const IssuedIo& io = slots_[slot].io;
    if (guard_.Conflicts(io.target, io.op, io.offset_bytes, io.bytes, slots_[slot].order)) {
      parked_[kept++] = slot;
    } else if (batch_full()) {
      parked_[kept++] = slot;
      parked_ready_ = true;
    } else {
      Enqueue(slot);
    }
  }
  parked_.resize(kept);
}

void SlotTable::Complete(uint64_t tag) {
  const auto slot = static_cast<uint32_t>(tag);
  const IssuedIo& io = slots_[slot].io;
  SeeLatest({.ns = io.seen_ns, .by = io.sequence});
  Kind& kind = KindOf(io);
  --kind.out;
  kind.seen_ns = std::max(kind.seen_ns.value_or(io.seen_ns), io.seen_ns);
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
  free_.push_back(slot);
  parked_ready_ = true;
}

}  // namespace blktape
