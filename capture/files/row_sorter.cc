#include "capture/files/row_sorter.h"

#include <algorithm>

namespace blktape {

std::optional<uint32_t> RowSorter::Put(const IoRecord& record, std::string_view process) {
  // A row without a time stays at its place.
  const int64_t arrival_ns = record.arrival_ns().value_or(newest_ns_);
  if (arrival_ns < left_ns_) return std::nullopt;
  if (arrival_ns < newest_ns_) ++sorted_;
  newest_ns_ = std::max(newest_ns_, arrival_ns);
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const uint32_t slot = free_.back();
  free_.pop_back();
  slots_[slot].record = record;
  slots_[slot].process.assign(process);
  slots_[slot].id.reset();
  order_.push({arrival_ns, number_++, slot});
  return slot;
}

bool RowSorter::Add(const IoRecord& record, std::string_view process) {
  if (!Put(record, process)) return false;
  if (order_.size() > window_) LeaveOldest();
  return true;
}

bool RowSorter::Begin(uint64_t id, const IoRecord& record, std::string_view process) {
  const std::optional<uint32_t> slot = Put(record, process);
  if (!slot) return false;
  const auto [it, added] = open_.try_emplace(id, *slot);
  if (!added) {
    slots_[it->second].id.reset();
    ++unended_;
    it->second = *slot;
  }
  slots_[*slot].id = id;
  if (order_.size() > window_) LeaveOldest();
  return true;
}

bool RowSorter::End(uint64_t id, int64_t complete_ns, uint32_t error) {
  const auto it = open_.find(id);
  if (it == open_.end()) return false;
  Slot& slot = slots_[it->second];
  slot.record.complete_ns = complete_ns;
  slot.record.error = error;
  slot.id.reset();
  open_.erase(it);
  return true;
}

void RowSorter::LeaveOldest() {
  const Place oldest = order_.top();
  order_.pop();
  left_ns_ = std::max(left_ns_, oldest.arrival_ns);
  Slot& slot = slots_[oldest.slot];
  if (slot.id) {
    open_.erase(*slot.id);
    ++unended_;
  }
  leave_(slot.record, slot.process);
  free_.push_back(oldest.slot);
}

void RowSorter::Flush() {
  while (!order_.empty()) LeaveOldest();
}

}  // namespace blktape
