#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "replay/issue/issue_totals.h"
#include "replay/plan/plan.h"

namespace blktape {

// The planned I/Os of a closed replay from when they are taken from the plan until they are issued,
// each once its gates are complete and its think time is over. So an I/O that waits holds back only
// what belongs to its own chain, which keeps the order of the plan. Times in ns on the replay's
// clock. Nothing is allocated after construction. Not thread-safe.
//
//   opens(X) = max( start, completions of all gates that X and those before it in its chain name )
//   due(X)   = max( opens(X) + X.offset_ns, when the last of these was seen,
//                   due of the one before it in its chain )
//
// A gate's completion is by its PlannedIo::host_ns before it is seen.
//
// Commits of one journal take turns (docs/closed_loop.md, Shared commits): each copy of a commit is
// a chain of its own, which begins when its gates are complete and no other is under way. What was
// asked for and could have begun by then is left out when that one is complete, and counts as
// complete with it. A flush that is needed only after a commit that was left out is itself left out
// otherwise, once its gates are complete.
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
  // Takes the one that is due first; among equals the one that is so but for when its gates were
  // seen, then the first of the plan. NextDueNs() is not INT64_MAX.
  Taken Take();
  // The completion of the I/O that was taken with this gate is seen; nothing happens for kNoGate.
  void Complete(uint32_t gate, int64_t seen_ns);
  // The next I/O that is left out; false if there is none. Until then it is held.
  bool TakeLeftOut(PlannedIo* io);
  // Nothing is out, nothing held is due at any time, and no step comes before: commits that wait
  // for the end of one of which the plan has no more go on.
  void EndCommits(int64_t now_ns);

  const IssueTotals::Commits& commits() const { return commits_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  // When something happened, and when that was seen.
  struct Moment {
    int64_t ns = INT64_MIN;
    int64_t seen_ns = INT64_MIN;
    static Moment At(int64_t ns) { return {ns, ns}; }
    void Delay(const Moment& other) {
      ns = std::max(ns, other.ns);
      seen_ns = std::max(seen_ns, other.seen_ns);
    }
    // So long after it, but not before it is seen.
    int64_t After(int64_t by_ns) const { return std::max(ns + by_ns, seen_ns); }
  };
  struct Entry {
    PlannedIo io;
    uint32_t chain = kNone;
    uint32_t before_think = kNone;  // waits for what this journal writes, too, before it opens
    bool to_the_end = false;        // of the commit
    bool and_the_next = false;      // and then for what the next one writes
    uint32_t after_think = kNone;   // and for what this journal writes when it is due
    bool unneeded = false;          // it follows a commit that was not left out
    bool left_out = false;
    bool retired = false;  // and no gate leads to it
    Moment opens = {};
    int64_t freed_ns = 0;
    uint32_t waits = 0;     // gates that are not complete
    uint32_t next = kNone;  // of its chain, or of the free ones
    uint32_t gate = kNone;
  };
  struct Chain {
    uint32_t first = kNone;
    uint32_t last = kNone;
    Moment opens = {};
    int64_t due_ns = 0;
    int64_t meant_ns = 0;          // due, but for when that was seen
    bool ready = false;            // its first is in ready_
    bool parked = false;           // its first waits for what a journal writes
    uint32_t next_parked = kNone;  // of that journal
  };
  // Of a commit: the chain at the same place behind those of threads.
  struct Copy {
    enum class State : uint8_t { kWaits, kAsks, kRuns, kJoins, kLeftOut };
    State state = State::kWaits;
    bool asked = false;
    bool writes = true;  // something before its record
    bool whole = false;  // no more of it comes
    uint8_t number = 0;
    uint32_t journal = 0;
    uint32_t undone = 0;    // of its I/Os: held, or out with a gate
    Moment end = {};        // the latest completion
    uint32_t next = kNone;  // of those that ask, or join, or are free
  };
  struct Journal {
    Moment rests_since = {};
    uint32_t running = kNone;
    bool writing = false;  // until the commit record of the one that runs
    uint32_t asking = kNone;
    uint32_t joining = kNone;
    uint32_t parked = kNone;                                            // chains
    std::array<uint32_t, Dependencies::kMaxCopies> coming = AllNone();  // not whole yet, by number
    static std::array<uint32_t, Dependencies::kMaxCopies> AllNone();
  };
  struct Gate {
    Moment complete = {};
    int64_t host_ns = 0;
    uint32_t waiters = kNone;  // a list, while it is not complete
    uint32_t copy = kNone;     // whose I/O it is
    uint32_t journal = kNone;  // that writes it
    bool done = false;
    bool left_out = false;
    bool named = false;     // a slot of the plan leads to it
    uint32_t next = kNone;  // of the free ones
  };
  struct Waiter {
    uint32_t entry = 0;
    uint32_t next = kNone;     // of its gate, or of the free ones
    bool if_left_out = false;  // else the entry is not needed
  };
  struct Ready {
    int64_t due_ns;
    int64_t meant_ns;
    uint64_t sequence;
    uint32_t entry;
    // A heap's first is its largest: later is less.
    bool operator<(const Ready& other) const {
      return std::tie(due_ns, meant_ns, sequence) >
             std::tie(other.due_ns, other.meant_ns, other.sequence);
    }
  };

  void Require(uint32_t entry, uint32_t slot);
  void NameGate(uint32_t entry, uint32_t slot);
  void FreeGate(uint32_t gate);
  void FreeEntry(uint32_t entry);
  void Open(uint32_t gate, const Moment& complete);
  void MoveOn(uint32_t entry);
  void LookAt(uint32_t number);
  void PushReady(uint32_t number, Moment opens);
  Ready ReadyOf(const Chain& chain) const;
  void PushDue(uint32_t number);
  void Park(uint32_t number, Journal* journal);
  void Settle();
  uint32_t ChainFor(const PlannedIo& step);
  Copy* CopyOf(uint32_t chain) {
    return chain < kMaxChains ? nullptr : &copies_[chain - kMaxChains];
  }
  uint32_t Begin(const PlannedIo& step);
  void End(uint32_t copy);
  void EndComing(Journal* journal, const Moment& now);
  void DidOneOf(uint32_t copy);
  void Finish(uint32_t copy);
  void Ask(uint32_t copy);
  void Run(uint32_t copy, const Ready& ready);
  void UnparkLater(Journal* journal, const Ready& than);
  void Rest(Journal* journal, const Moment& now);
  bool IsWriting(const Journal& journal, bool to_the_end) const;
  void Wrote(Journal* journal, const Moment& now, bool to_the_end);
  void LeaveOut(uint32_t entry, const Moment& now);
  void LeaveOutCopy(uint32_t copy, const Moment& now);
  void Retire(uint32_t entry);

  Moment start_;
  std::vector<Entry> entries_;
  std::vector<Chain> chains_;  // of threads, then of copies
  std::vector<Copy> copies_;
  std::vector<Journal> journals_;  // by the chain of the thread that writes it
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
  uint32_t free_copy_ = kNone;
  uint32_t left_out_ = kNone;  // entries
  IssueTotals::Commits commits_;
};

}  // namespace blktape
