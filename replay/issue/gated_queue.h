#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "replay/plan/plan.h"

namespace blktape {

// The planned I/Os of a closed replay from when they are taken from the plan until they are issued,
// each once its gates are complete and its think time is over. So an I/O that waits holds back only
// what belongs to its own chain, which keeps the order of the plan. Times in ns on the replay's
// clock. Nothing is allocated after construction. Not thread-safe.
//
//   opens(X) = max( start, completions of all gates that X and those before it in its chain name )
//   due(X)   = max( opens(X) + X.offset_ns, due of the one before it in its chain )
class GatedQueue {
 public:
  static constexpr uint32_t kNoGate = UINT32_MAX;

  // Holds at most `capacity` I/Os; at most `out` of those taken are not complete yet.
  GatedQueue(uint32_t capacity, uint32_t out);

  // No I/O is due before. Before the first Add().
  void Start(int64_t start_ns);

  // Whether there is room for the next step of the plan.
  bool HasRoom() const;
  // The next step of the plan, kGates or kIo. `freed_ns`: when what kept the step back before had
  // gone (memory, room here); INT64_MIN if nothing did.
  void Add(const PlannedIo& step, int64_t freed_ns);

  // I/Os held; without those that only name gates.
  uint32_t size() const { return held_; }
  // The earliest due time of the I/Os whose gates are complete; INT64_MAX if there are none.
  int64_t NextDueNs() const { return ready_.empty() ? INT64_MAX : ready_.front().due_ns; }

  struct Taken {
    PlannedIo io;
    int64_t due_ns = 0;
    int64_t freed_ns = 0;
    uint32_t gate = kNoGate;  // for Complete()
  };
  // Takes the one that is due first, the first of the plan among equals. NextDueNs() is not
  // INT64_MAX.
  Taken Take();
  // The I/O that was taken with this gate has completed; nothing happens for kNoGate.
  void Complete(uint32_t gate, int64_t complete_ns);

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Entry {
    PlannedIo io;
    int64_t opens_ns = 0;
    int64_t freed_ns = 0;
    uint32_t waits = 0;     // gates that are not complete
    uint32_t next = kNone;  // of its chain, or of the free ones
    uint32_t gate = kNone;
  };
  struct Chain {
    uint32_t first = kNone;
    uint32_t last = kNone;
    int64_t opens_ns = 0;
    int64_t due_ns = 0;
    bool ready = false;  // its first is in ready_
  };
  struct Gate {
    int64_t complete_ns = 0;
    uint32_t waiters = kNone;  // a list, while it is not complete
    bool done = false;
    bool named = false;     // a slot of the plan leads to it
    uint32_t next = kNone;  // of the free ones
  };
  struct Waiter {
    uint32_t entry = 0;
    uint32_t next = kNone;  // of its gate, or of the free ones
  };
  struct Ready {
    int64_t due_ns;
    uint64_t sequence;
    uint32_t entry;
    // A heap's first is its largest: later is less.
    bool operator<(const Ready& other) const {
      return due_ns != other.due_ns ? due_ns > other.due_ns : sequence > other.sequence;
    }
  };

  void Require(uint32_t entry, uint32_t slot);
  void NameGate(uint32_t entry, uint32_t slot);
  void FreeGate(uint32_t gate);
  void LookAt(Chain* chain);

  int64_t start_ns_ = 0;
  std::vector<Entry> entries_;
  std::vector<Chain> chains_;
  std::vector<Gate> gates_;
  std::vector<Waiter> waiters_;
  std::vector<uint32_t> gate_of_slot_;
  std::vector<Ready> ready_;
  uint32_t free_entry_ = kNone;
  uint32_t free_gate_ = kNone;
  uint32_t free_waiter_ = kNone;
  uint32_t free_waiters_ = 0;
  uint32_t partial_ = kNone;  // whose gates came, itself not yet
  uint32_t held_ = 0;
};

}  // namespace blktape
