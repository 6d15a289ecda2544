#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "replay/engine/engine.h"
#include "replay/issue/frontier.h"
#include "replay/issue/issue_totals.h"
#include "replay/issue/issued_io.h"
#include "replay/issue/issuer_options.h"
#include "replay/issue/overlap_guard.h"
#include "replay/plan/host_part.h"
#include "replay/plan/plan.h"

namespace blktape {

// The I/Os of an issuer from when they are taken from the plan until they are complete, each in a
// slot: in the batch that is submitted next; parked there, where one conflicts with an earlier one
// that is not complete; or out. Nothing is allocated after construction. Not thread-safe.
class SlotTable {
 public:
  // What of the drive's an I/O waited for: until when (on the replay's clock), whose end that was.
  struct Freed {
    int64_t ns = INT64_MIN;
    uint64_t by = kNoSequence;
  };
  struct Slot {
    IssuedIo io;
    int64_t offset_ns = 0;  // of its PlannedIo, as is
    int64_t submit_begin_ns = 0;
    uint64_t order = 0;           // in which slots were taken
    uint64_t looks = 0;           // EngineDesk's, before it was submitted
    uint32_t gate = kNoGateSlot;  // the pacer's
  };

  // `totals` must outlive the table.
  SlotTable(const IssuerOptions& options, IssueTotals* totals);

  bool has_free() const { return !free_.empty(); }
  bool batch_full() const { return batch_.size() >= options_.batch; }
  bool any_parked() const { return !parked_.empty(); }
  // With an empty batch: how many the engine has, or has completed and are not booked.
  uint32_t out() const {
    return static_cast<uint32_t>(slots_.size() - free_.size() - parked_.size());
  }

  // Puts an I/O that is due into the batch, or parks it. There is a free slot, and the batch is not
  // full. `freed`: what it waited for.
  void Take(const PlannedIo& io, int64_t due_ns, Freed freed, uint32_t gate);
  // Puts what is parked and need not be any more into the batch, as far as that has room.
  void TakeParked();

  std::span<const EngineRequest> batch() const { return batch_; }
  void ClearBatch() { batch_.clear(); }
  // A request's tag is its slot.
  Slot& at(uint64_t tag) { return slots_[tag]; }

  // The I/O in this slot was seen to be complete: it is free.
  void Complete(uint64_t tag);
  // The latest completion that is booked, of this issuer or, where an I/O waited for one, another.
  const Freed& latest() const { return latest_; }
  void SeeLatest(Freed seen) {
    if (seen.ns >= latest_.ns) latest_ = seen;
  }
  // A driver held the thread within a call until then, for this I/O.
  void SeeHeld(Freed held) { held_ = held; }

 private:
  struct Kind {
    uint32_t out = 0;
    std::optional<int64_t> seen_ns;  // the latest completion
  };

  void Enqueue(uint32_t slot);
  Kind& KindOf(const IssuedIo& io) { return kinds_[BeginsWithFlush(io.op, io.flags) ? 1 : 0]; }
  static int64_t PauseNs(const Kind& kind, int64_t due_ns);

  const IssuerOptions& options_;
  IssueTotals* const totals_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  std::vector<uint32_t> parked_;  // in plan order
  std::vector<EngineRequest> batch_;
  OverlapGuard guard_;
  Frontier frontier_;
  Freed latest_;
  Freed held_;
  std::array<Kind, 2> kinds_;
  uint64_t taken_ = 0;
  bool parked_ready_ = false;  // something completed: some of parked_ may go
};

}  // namespace blktape
