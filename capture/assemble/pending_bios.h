#pragma once

#include <cstdint>
#include <vector>

#include "capture/assemble/arrival_queue.h"
#include "capture/assemble/keyed_pool.h"
#include "capture/source/block_event.h"

namespace blktape {

// A bio that was queued and not yet issued, or what is left of one that is issued in parts.
struct PendingBio {
  uint64_t begin = 0;  // sectors
  uint64_t end = 0;
  int64_t queue_ns = 0;
  ArrivalQueue::Ticket ticket = 0;
  uint32_t flags = 0;
  uint32_t pid = 0;
  uint32_t loss_count = 0;  // losses noted before it was queued
  bool own = false;
  // The same sectors were queued once more, and one of the two was issued. A bio that may not wait
  // fails before it is a request, without a trace in some sources, and is queued again.
  bool asked_again = false;
  ProcessComm comm{};
};

// The queued bios of all devices, found by where they lie.
class PendingBios {
 public:
  using Pool = KeyedPool<PendingBio>;

  // `arrivals` shares a bio's ticket between its parts; it must outlive this.
  explicit PendingBios(ArrivalQueue* arrivals) : arrivals_(arrivals) {}

  void Insert(uint32_t device, Op op, const PendingBio& bio);

  // Takes what covers sectors [begin, end), in order of address, into `taken`, cutting bios at the
  // edges; each of `taken` owns one use of its ticket. Gaps that no bio covers are left out. Among
  // several bios of one place the first queued is taken, but not before one queued after the latest
  // loss, or much later, which shows that the first is gone. Returns the sectors covered.
  uint64_t Take(uint32_t device, Op op, uint64_t begin, uint64_t end,
                std::vector<PendingBio>* taken);

  // Takes a bio that begins at `begin` and those queued after it, of any place, if their sizes add
  // up to exactly `sectors`: a drive that discards several ranges at once gets them in one request,
  // which tells the first address and the sum. `one_pid`: only bios of who queued the first; a plug
  // gathers what one task queues. Takes none and returns false if the sum is not met.
  bool TakeRun(uint32_t device, Op op, uint64_t begin, uint64_t sectors, bool one_pid,
               std::vector<PendingBio>* taken);

  // Where the bio ends that Take would give first for [begin, end); `begin` if it would give none.
  uint64_t EndOfFirst(uint32_t device, Op op, uint64_t begin, uint64_t end) const;
  // Whether [begin, end) is covered by bios without a gap.
  bool Covers(uint32_t device, Op op, uint64_t begin, uint64_t end) const;

  // Takes the bio of exactly these sectors; false if there is none.
  bool TakeExact(uint32_t device, Op op, uint64_t begin, uint64_t end, PendingBio* taken);

  // A bio that begins at `begin` goes on as two, the second from `at`.
  void Split(uint32_t device, Op op, uint64_t begin, uint64_t at);

  Pool& pool() { return pool_; }
  size_t size() const { return pool_.size(); }

 private:
  uint32_t FindAt(uint32_t device, Op op, uint64_t sector, uint64_t end) const;
  uint32_t FindAfter(uint32_t device, Op op, uint64_t sector, uint64_t end) const;

  ArrivalQueue* arrivals_;
  Pool pool_;
};

}  // namespace blktape
