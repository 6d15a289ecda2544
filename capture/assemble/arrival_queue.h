#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/ring_queue.h"
#include "capture/source/block_event.h"
#include "format/io_record.h"

namespace blktape {

// A finished record and the name of the process that queued it (empty if unknown).
struct FinishedIo {
  IoRecord record;
  ProcessComm comm{};
};

// Releases records in the order in which their I/Os arrived, although they finish in another order.
// Each arriving I/O takes a ticket, and a record leaves when all older tickets are closed. A ticket
// no longer holds others back when it stays open longer than `hold_ns`, or while more than
// `hold_records` newer records wait. Its record then leaves out of order, when it is finished, and
// is counted as late.
class ArrivalQueue {
 public:
  using Ticket = uint64_t;
  using Leave = std::function<void(const FinishedIo&)>;

  ArrivalQueue(int64_t hold_ns, uint32_t hold_records, Leave leave)
      : hold_ns_(hold_ns), hold_records_(hold_records), leave_(std::move(leave)) {}

  // Takes a new ticket with one open use. Tickets are taken in order of arrival.
  Ticket Take(int64_t arrival_ns);
  // Adds an open use: a bio goes into several requests.
  void Share(Ticket ticket);
  // Ends one use, with or without a record.
  void Close(Ticket ticket);
  void Close(Ticket ticket, const FinishedIo& io);

  // Releases the records that may leave at `now_ns`.
  void Drain(int64_t now_ns);
  // Releases all finished records, even if older tickets are open.
  void DrainAll();

  uint64_t late() const { return late_; }
  size_t waiting() const { return slots_.size(); }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  struct Slot {
    int64_t arrival_ns = 0;
    uint32_t open = 0;
    uint32_t first = kNone;  // the first of its finished records
    uint32_t last = kNone;
  };
  struct Node {
    FinishedIo io;
    uint32_t next = kNone;
  };

  void LeaveFront();

  int64_t hold_ns_;
  uint32_t hold_records_;
  Leave leave_;
  RingQueue<Slot> slots_;
  Ticket base_ = 0;  // ticket of the front slot
  std::vector<Node> nodes_;
  uint32_t free_ = kNone;
  uint64_t late_ = 0;
};

}  // namespace blktape
