#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "capture/arrival_queue.h"

namespace blktape {

// Brings finished records that come in order of completion into order of arrival, as far as they
// come soon enough: one that arrived before what has left already leaves at once and is counted
// late. Those that arrived at one moment (a plugged batch bears one stamp) leave in order of issue.
// Nothing tells here who else is in flight, as ArrivalQueue knows; the caller's bound in time
// decides. One thread.
class ArrivalSorter {
 public:
  using Leave = std::function<void(const FinishedIo&)>;

  // At most `hold_records` wait, beyond that the oldest leaves.
  ArrivalSorter(uint32_t hold_records, Leave leave)
      : hold_records_(hold_records), leave_(std::move(leave)) {}

  void Add(const FinishedIo& io);
  // Lets go all that arrived before `ns`.
  void Release(int64_t ns);

  uint64_t late() const { return late_; }

 private:
  // What the heap moves about is small; the records stay where they are.
  struct Place {
    int64_t arrival_ns;
    int64_t issue_ns;
    uint32_t slot;
    bool operator>(const Place& other) const {
      return std::tie(arrival_ns, issue_ns) > std::tie(other.arrival_ns, other.issue_ns);
    }
  };

  void LeaveOldest();

  uint32_t hold_records_;
  Leave leave_;
  std::priority_queue<Place, std::vector<Place>, std::greater<>> order_;  // oldest on top
  std::vector<FinishedIo> slots_;
  std::vector<uint32_t> free_;
  std::optional<int64_t> left_ns_;  // arrival of the newest that has left
  uint64_t late_ = 0;
};

}  // namespace blktape
