#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/ring_queue.h"
#include "capture/assemble/arrival_queue.h"
#include "capture/source/block_event.h"
#include "format/io_record.h"

namespace blktape {

// Sorts finished records from order of completion into order of arrival. A record that arrived
// before one that has already left leaves at once and is counted as late. Records with the same
// arrival (all bios of a plugged batch have one timestamp) leave in order of issue. Unlike
// ArrivalQueue, this class does not know which other I/Os are in flight; the caller decides when
// records may leave. One thread.
class ArrivalSorter {
 public:
  // The callee may change the record.
  using Leave = std::function<void(FinishedIo&)>;

  // At most `hold_records` wait; beyond that the oldest leaves.
  ArrivalSorter(uint32_t hold_records, Leave leave)
      : hold_records_(hold_records), leave_(std::move(leave)) {}

  // `device` replaces record.device. The record must not have a process or an ordinal yet.
  void Add(const IoRecord& record, uint32_t device, const ProcessComm& comm);
  // Releases all records that arrived before `ns`.
  void Release(int64_t ns);

  uint64_t late() const { return late_; }

 private:
  // Sorting moves only these small entries; the records stay in place.
  struct Place {
    int64_t arrival_ns;
    int64_t issue_ns;
    uint64_t number;  // counts up in the order added
    bool operator<(const Place& other) const {
      return std::tie(arrival_ns, issue_ns, number) <
             std::tie(other.arrival_ns, other.issue_ns, other.number);
    }
  };
  // A record in half the space, filled in place: tens of thousands of records wait, and each copy
  // of one costs cache misses.
  struct Waiting {
    int64_t queue_ns;
    int64_t issue_ns;
    int64_t complete_ns;
    uint64_t lba_sectors;
    uint64_t bytes;
    uint64_t since_wake_ns;
    ProcessComm comm;
    uint32_t device;
    uint32_t flags;
    uint32_t error;
    uint32_t pid;
    uint32_t cpu;
    uint32_t merged_bios;
    uint32_t prio;
    uint32_t waker;
    uint16_t present;  // one bit per optional field
    Op op;
    bool left;
  };
  static_assert(sizeof(Waiting) == 104);

  static void Pack(const IoRecord& record, uint32_t device, const ProcessComm& comm,
                   Waiting* waiting);
  static void Unpack(const Waiting& waiting, FinishedIo* io);

  // Sorts the newly added records into order_.
  void Sort();
  void LeaveOldest();

  uint32_t hold_records_;
  Leave leave_;
  // Completions come almost in order of arrival. So records wait in the order in which they came,
  // which reads and writes memory sequentially, and each round's new records are sorted together
  // into the end of the waiting ones. A heap over all records would cost a cache miss per level.
  RingQueue<Waiting> waiting_;
  uint64_t first_number_ = 0;  // number of the front of waiting_
  std::vector<Place> order_;   // the first sorted_ entries oldest first, then in the order added
  size_t gone_ = 0;            // entries of order_ that have left
  size_t sorted_ = 0;
  std::optional<int64_t> left_ns_;  // arrival of the newest record that has left
  uint64_t late_ = 0;
};

}  // namespace blktape
