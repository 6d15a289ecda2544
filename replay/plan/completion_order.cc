#include "replay/plan/completion_order.h"

#include <algorithm>

namespace blktape {

void CompletionOrder::Arrive(int64_t arrival_ns, std::vector<uint32_t>* required) {
  while (!heap_.empty() && heap_.front().complete_ns <= arrival_ns) {
    std::pop_heap(heap_.begin(), heap_.end(), Later());
    required->push_back(heap_.back().slot);
    free_slots_.push_back(heap_.back().slot);
    last_complete_ns_ =
        std::max(last_complete_ns_.value_or(heap_.back().complete_ns), heap_.back().complete_ns);
    heap_.pop_back();
  }
}

std::optional<uint32_t> CompletionOrder::Add(int64_t complete_ns) {
  uint32_t slot = 0;
  if (!free_slots_.empty()) {
    slot = free_slots_.back();
    free_slots_.pop_back();
  } else if (slots_used_ < max_slots_) {
    slot = slots_used_++;
  } else {
    return std::nullopt;
  }
  heap_.push_back({complete_ns, slot});
  std::push_heap(heap_.begin(), heap_.end(), Later());
  return slot;
}

}  // namespace blktape
