#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace blktape {

// The recording's order of completion as gates for a replay at maximum speed: an I/O may be issued
// once every I/O that had completed before it was queued has completed in the replay. Since
// arrivals ascend, each set contains the one before it; so each I/O is told only which ones are new
// in its set, and waits for all it was ever told.
//
// An I/O that others may wait for has a slot. The slot is free again once it was handed out by
// Arrive(), which is safe for the side that waits: whoever gets the slot next is issued only after
// its former owner completed. Memory: the recording's I/Os in flight, at most `max_slots`; an I/O
// beyond that gates nothing and is counted.
class CompletionOrder {
 public:
  explicit CompletionOrder(uint32_t max_slots) : max_slots_(max_slots) {}

  // The next I/O arrives. Appends to `required` the slots of those that completed at or before
  // `arrival_ns` and were not handed out before.
  void Arrive(int64_t arrival_ns, std::vector<uint32_t>* required);

  // An I/O that arrived completed in the recording at `complete_ns`: its slot, or none if there are
  // too many.
  std::optional<uint32_t> Add(int64_t complete_ns);

  // The latest completion handed out so far.
  std::optional<int64_t> last_complete_ns() const { return last_complete_ns_; }
  // Whether the recording had nothing in flight at the last arrival.
  bool idle() const { return heap_.empty(); }

 private:
  struct Pending {
    int64_t complete_ns;
    uint32_t slot;
  };
  struct Later {
    bool operator()(const Pending& a, const Pending& b) const {
      return a.complete_ns != b.complete_ns ? a.complete_ns > b.complete_ns : a.slot > b.slot;
    }
  };

  const uint32_t max_slots_;
  std::vector<Pending> heap_;  // earliest completion first
  std::vector<uint32_t> free_slots_;
  uint32_t slots_used_ = 0;
  std::optional<int64_t> last_complete_ns_;
};

}  // namespace blktape
