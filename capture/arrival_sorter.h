#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/ring_queue.h"
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
  // What sorting moves about is small; the records stay where they are.
  struct Place {
    int64_t arrival_ns;
    int64_t issue_ns;
    uint64_t number;  // in the order added
    bool operator<(const Place& other) const {
      return std::tie(arrival_ns, issue_ns, number) <
             std::tie(other.arrival_ns, other.issue_ns, other.number);
    }
  };
  struct Waiting {
    FinishedIo io;
    bool left = false;
  };

  // Puts what was added since into order_.
  void Sort();
  void LeaveOldest();

  uint32_t hold_records_;
  Leave leave_;
  // Completions come nearly in order of arrival. So the records wait as they came, where memory is
  // read and written from one end to the other, and a round's are sorted at once, into the end of
  // those that wait: a heap over all of them costs a cache miss a level.
  RingQueue<Waiting> waiting_;
  uint64_t first_number_ = 0;  // of the front of waiting_
  std::vector<Place> order_;   // up to sorted_ oldest first, then as added
  size_t gone_ = 0;            // of order_: have left
  size_t sorted_ = 0;
  std::optional<int64_t> left_ns_;  // arrival of the newest that has left
  uint64_t late_ = 0;
};

}  // namespace blktape
