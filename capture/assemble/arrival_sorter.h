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

// Brings finished records that come in order of completion into order of arrival, as far as they
// come soon enough: one that arrived before what has left already leaves at once and is counted
// late. Those that arrived at one moment (a plugged batch bears one stamp) leave in order of issue.
// Nothing tells here who else is in flight, as ArrivalQueue knows; the caller's bound in time
// decides. One thread.
class ArrivalSorter {
 public:
  // The record is the callee's to change.
  using Leave = std::function<void(FinishedIo&)>;

  // At most `hold_records` wait, beyond that the oldest leaves.
  ArrivalSorter(uint32_t hold_records, Leave leave)
      : hold_records_(hold_records), leave_(std::move(leave)) {}

  // `device` takes the place of record.device. The record is of no trace yet: its process and
  // ordinal are absent.
  void Add(const IoRecord& record, uint32_t device, const ProcessComm& comm);
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
  // A record in half the room, and filled in place: records wait by the ten thousand, and each copy
  // of one is waited for.
  struct Waiting {
    int64_t queue_ns;
    int64_t issue_ns;
    int64_t complete_ns;
    uint64_t lba_sectors;
    uint64_t bytes;
    ProcessComm comm;
    uint32_t device;
    uint32_t flags;
    uint32_t error;
    uint32_t pid;
    uint32_t cpu;
    uint32_t merged_bios;
    uint32_t prio;
    uint16_t present;  // a bit for each of the optional fields
    Op op;
    bool left;
  };
  static_assert(sizeof(Waiting) == 88);

  static void Pack(const IoRecord& record, uint32_t device, const ProcessComm& comm,
                   Waiting* waiting);
  static void Unpack(const Waiting& waiting, FinishedIo* io);

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
