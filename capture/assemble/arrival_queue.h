#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/ring_queue.h"
#include "capture/source/block_event.h"
#include "format/io_record.h"

namespace blktape {

// A finished record and the name of the process that queued it (empty if not known).
struct FinishedIo {
  IoRecord record;
  ProcessComm comm{};
};

// Lets records leave in the order their I/Os arrived although they finish in another: who arrives
// takes a ticket, and a record leaves when all older tickets are closed. A ticket that stays open
// longer than `hold_ns`, or while more than `hold_records` newer ones wait, no longer holds the
// others back: its record then leaves when it is there, out of order, and is counted late.
class ArrivalQueue {
 public:
  using Ticket = uint64_t;
  using Leave = std::function<void(const FinishedIo&)>;

  ArrivalQueue(int64_t hold_ns, uint32_t hold_records, Leave leave)
      : hold_ns_(hold_ns), hold_records_(hold_records), leave_(std::move(leave)) {}

  // A new ticket, open once. Tickets are taken in order of arrival.
  Ticket Take(int64_t arrival_ns);
  // One more open use: a bio that goes into several requests.
  void Share(Ticket ticket);
  // One use has ended, with or without a record.
  void Close(Ticket ticket);
  void Close(Ticket ticket, const FinishedIo& io);

  // Lets go what may leave at `now_ns`.
  void Drain(int64_t now_ns);
  // Lets go all finished records, whatever is open.
  void DrainAll();

  uint64_t late() const { return late_; }
  size_t waiting() const { return slots_.size(); }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  struct Slot {
    int64_t arrival_ns = 0;
    uint32_t open = 0;
    uint32_t first = kNone;  // its finished records
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
