#pragma once

#include <cstdint>
#include <vector>

#include "capture/assemble/arrival_queue.h"
#include "capture/assemble/keyed_pool.h"
#include "capture/source/block_event.h"

namespace blktape {

// A bio that was queued and not yet issued, or the rest of one that is issued in parts.
struct PendingBio {
  uint64_t begin = 0;  // sectors
  uint64_t end = 0;
  int64_t queue_ns = 0;
  ArrivalQueue::Ticket ticket = 0;
  uint32_t flags = 0;
  uint32_t pid = 0;
  uint32_t loss_count = 0;  // number of losses noted before it was queued
  bool own = false;
  // The same sectors were queued again, and one of the two bios was issued. (A bio that must not
  // wait can fail before it becomes a request, unseen by some sources, and is then queued again.)
  bool asked_again = false;
  ProcessComm comm{};
};

// The queued bios of all devices, found by address.
class PendingBios {
 public:
  using Pool = KeyedPool<PendingBio>;

  // `arrivals` shares a bio's ticket between its parts; it must outlive this object.
  explicit PendingBios(ArrivalQueue* arrivals) : arrivals_(arrivals) {}

  void Insert(uint32_t device, Op op, const PendingBio& bio);

  // Moves the bios that cover sectors [begin, end) to `taken`, in order of address, and cuts bios
  // at the edges. Each element of `taken` owns one use of its ticket. Gaps that no bio covers are
  // left out. Among several bios at one address the first queued is taken, unless another was
  // queued after the latest loss, or much later, which shows that the first one is gone. Returns
  // the number of sectors covered.
  uint64_t Take(uint32_t device, Op op, uint64_t begin, uint64_t end,
                std::vector<PendingBio>* taken);

  // Takes a bio that begins at `begin` and bios queued after it, at any address, if their sizes add
  // up to exactly `sectors`. (A drive that can discard several ranges at once gets them in one
  // request; its events contain only the first address and the total size.) `one_pid`: only bios of
  // the task that queued the first, because a plug collects the bios of one task. If the sum does
  // not match, takes none and returns false.
  bool TakeRun(uint32_t device, Op op, uint64_t begin, uint64_t sectors, bool one_pid,
               std::vector<PendingBio>* taken);

  // The end of the first bio that Take would return for [begin, end); `begin` if there is none.
  uint64_t EndOfFirst(uint32_t device, Op op, uint64_t begin, uint64_t end) const;
  // Whether [begin, end) is covered by bios without a gap.
  bool Covers(uint32_t device, Op op, uint64_t begin, uint64_t end) const;

  // Takes the bio with exactly these sectors; false if there is none.
  bool TakeExact(uint32_t device, Op op, uint64_t begin, uint64_t end, PendingBio* taken);

  // Splits a bio that begins at `begin` into two; the second begins at `at`.
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
