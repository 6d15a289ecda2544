#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "format/io_record.h"
#include "replay/plan/turns.h"
#include "replay/plan/wakes.h"

namespace blktape {

// Infers what each I/O of a recording waited for; docs/closed_loop.md is the
// definition. Records come in the order of arrival. A thread's I/Os are a chain: each waits for
// those of its own thread that had completed before it arrived; some wait for another thread's,
// too. The rest of the time until it arrived is think time.
//
// A commit of a journal, from its first write to its commit record, is there once for each thread
// that asked for it: as copies, of which the replay writes those that it needs. Its I/Os are a
// chain of their own in each copy. Where programs write a file system's log, it has a chain of its
// own, too, as if a thread of the device wrote it. Of those who wait for such a commit, some file
// systems let all but who wrote it flush afterwards: so each does whose copy the replay leaves out.
//
// Of several machines in one trace none waits for another's I/O.
//
// An I/O that others may wait for has a slot, free again once nobody can name it any more. Memory:
// at most `max_slots` I/Os and `max_chains` threads; an I/O beyond that gates nothing. Of more
// threads, the one that was silent for longest gives its chain to the new one. Pure, not
// thread-safe.
class Dependencies {
 public:
  // `machine_of_device`: by the index of a record's device; one beyond is of machine 0.
  Dependencies(uint32_t max_slots, uint32_t max_chains,
               const std::vector<uint32_t>& machine_of_device = {});

  // Of a commit that may be shared.
  enum class CommitPart : uint8_t { kNone, kBegins, kWithin, kEnds, kWhole };
  static bool Begins(CommitPart part) {
    return part == CommitPart::kBegins || part == CommitPart::kWhole;
  }
  static bool Ends(CommitPart part) {
    return part == CommitPart::kEnds || part == CommitPart::kWhole;
  }
  // More threads than this that ask for one commit wait for its first copy.
  static constexpr uint32_t kMaxCopies = 16;
  // In the name of a gate: not for this I/O, but for the writes, before the record, of the commit
  // of its journal that is under way before it thinks.
  static constexpr uint32_t kWhileWriting = uint32_t{1} << 31;
  // With that: of the one that is under way when its think time is over. There may be one of each.
  static constexpr uint32_t kAfterThink = uint32_t{1} << 30;
  // Or, before it thinks, for all of that commit; or for that, and then for the writes of the next.
  static constexpr uint32_t kToTheEnd = uint32_t{1} << 29;
  static constexpr uint32_t kAndTheNext = uint32_t{1} << 28;
  static constexpr uint32_t kOfJournal = kWhileWriting | kAfterThink | kToTheEnd | kAndTheNext;
  // This I/O is needed only if the gate, of its thread's copy of a commit, was left out.
  static constexpr uint32_t kIfLeftOut = uint32_t{1} << 27;
  // All that a gate's name may say beside the slot.
  static constexpr uint32_t kFlags = kOfJournal | kIfLeftOut;

  struct Wait {
    uint32_t chain = 0;  // of its thread or its log, also of a commit's I/Os
    CommitPart part = CommitPart::kNone;
    uint32_t copies = 1;
    bool asked = false;  // a commit that somebody waited for
    // From the last completion that it waited for (or the recording's first arrival) to its own
    // arrival.
    int64_t think_ns = 0;
    // Of the first I/O of a commit: so long after all that it waited for its thread asked for it.
    int64_t asks_after_ns = 0;
    // With kAfterThink: so long after these writes it goes on.
    int64_t goes_on_ns = 0;
    // A flush with kIfLeftOut: the log whose commit it follows.
    std::optional<uint32_t> flushes_after = std::nullopt;
    // Before this I/O its thread flushes like the last that did so after a commit in this log.
    struct FlushFirst {
      uint32_t log = 0;
      uint32_t chain = 0;  // of the thread
      uint32_t gate = 0;   // all that it waits for, with kIfLeftOut
      uint32_t slot = 0;   // its own
    };
    std::optional<FlushFirst> flush_first = std::nullopt;
  };

  // Any record arrives, planned or not: completions up to then have happened. `no_fua`: its device
  // has no FUA of its own, so that a flush follows a FUA write.
  void Arrive(const IoRecord& io, bool no_fua);
  // The record that arrived last is to be replayed. Appends the slots of what it waited for beyond
  // what its chain was told before. `of_worker`: a kernel worker queued it.
  Wait WaitOf(const IoRecord& io, std::vector<uint32_t>* gates, bool of_worker = false);
  // Of the record of the last WaitOf(), before its Add(): the same for each of its copies, from 0.
  Wait WaitOfCopy(uint32_t copy, std::vector<uint32_t>* gates) const;
  // And its own slot, where it completed: absent if there are too many.
  std::optional<uint32_t> Add(const IoRecord& io);
  // The slot of the next copy of what was added as `slot`.
  std::optional<uint32_t> AddCopy(uint32_t slot);

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Slot {
    uint64_t number = 0;  // counted as they are added
    int64_t arrival_ns = 0;
    int64_t complete_ns = 0;
    uint32_t device = 0;
    uint32_t chain = 0;
    uint32_t uses = 0;           // by whom it may still be named
    uint32_t next_copy = kNone;  // of a commit's I/O
    uint64_t commit_number = 0;  // of a commit that may be shared
    bool flush_follows = false;  // perhaps: a FUA write to a device without FUA
    bool sync = false;           // a write that may ask for a commit
    bool journal = false;
    bool commit = false;                             // its record
    std::optional<uint64_t> program = std::nullopt;  // whose threads may take turns
  };
  struct Pending {
    int64_t complete_ns;
    uint64_t number;  // of the slot's I/O: clocks that tick slowly give many the same time
    uint32_t slot;
    bool operator<(const Pending& other) const {  // a heap's first is its largest
      return complete_ns != other.complete_ns ? complete_ns > other.complete_ns
                                              : number > other.number;
    }
  };
  // Who waits for a commit: its sync write was complete when that began and none had begun since,
  // or it writes the commit itself.
  struct Asker {
    uint32_t slot = kNone;  // of that write; none of who writes it itself
    uint64_t number = 0;    // of its I/O
    uint32_t chain = 0;
    int64_t complete_ns = 0;
    int64_t asks_after_ns = 0;
  };
  // For whom a thread writes commits.
  enum class Writes : uint8_t { kUnknown, kForOthers, kForItself };
  // How often a thread went on: while a journal was not writing, and after or during writes that
  // were under way, or began at once, when the thread was woken; and how often of these at once.
  struct Goings {
    int apart = 0;
    int apart_at_once = 0;
    int after = 0;
    int after_at_once = 0;  // or while they were not complete
  };
  struct Chain {
    uint64_t thread = 0;
    uint32_t machine = 0;
    uint64_t last_seen = 0;
    int64_t born_ns = 0;           // its first arrival
    int64_t arrival_ns = 0;        // its last one
    uint32_t device = 0;           // and where
    int64_t issue_ns = 0;          // of that I/O
    uint32_t last_slot = kNone;    // of its I/Os, the one that completed last
    std::vector<uint32_t> untold;  // slots that completed since its last arrival
    bool any_completed = false;
    int64_t last_complete_ns = 0;      // of its own
    int64_t told_ns = INT64_MIN;       // latest completion it was told of
    bool synced = false;               // its last I/O was a sync write, not to a journal
    int64_t synced_ns = 0;             // when that arrived
    bool works = false;                // it has done more than write to a journal
    uint32_t out = 0;                  // of its I/Os with a slot, those not complete
    std::vector<uint32_t> journal_on;  // the devices of its journal writes
    bool committing = false;           // a journal's thread, until its commit record completes
    bool committed = false;            // it has written a commit record
    Writes writes = Writes::kUnknown;
    // Arrival of the first I/O of the commit under way, or of the last one.
    int64_t commit_from_ns = INT64_MIN;
    uint64_t commit = 0;          // its number, if it may be shared and its record has not arrived
    std::vector<Asker> askers;    // of the last one
    bool shares_blocks = false;   // with what the journal writes: it waited for that, the last time
    int64_t goes_on_ns = 0;       // and went on so long after it
    Goings goings;                // after its sync writes were durable
    Turns::Idle idle;             // told by its last completion
    int64_t idle_after_ns = 0;    // likewise, by Wakes
    uint64_t asked_commit = 0;    // the last commit that it asked for
    uint32_t asked_copy = 0;      // which copy of it is its own
    uint64_t wrote_commit = 0;    // in a log: the last one, until it has waited for that
    uint32_t wrote_slot = kNone;  // its record, once complete
    uint64_t wrote_log = 0;       // and the log
    uint64_t writer = 0;          // of a log: the thread that writes the commit under way
    bool others_flush = false;    // of a log: who asked for a commit but did not write it
  };
  struct Commit {
    int64_t from_ns = 0;
    int64_t complete_ns = 0;
    uint32_t slot = kNone;
  };
  // Of a commit that may be shared: what comes before its record.
  struct CommitWrites {
    uint64_t commit = 0;
    uint32_t chain = 0;
    int64_t from_ns = 0;
    int64_t complete_ns = INT64_MIN;  // the latest completion
    bool recorded = false;            // the record has arrived
    bool of_others = false;           // who waits for it is not who caused it
  };
  // For what a journal writes, before it thinks: a slot of one of its commits; kToTheEnd and
  // kAndTheNext.
  struct JournalWait {
    uint32_t slot = kNone;
    uint32_t how = 0;
  };
  // What completed last: of all, and of journals' writes. To a device these are of each journal
  // that has written there, whatever disk they went to.
  struct LastDone {
    uint32_t any = kNone;
    uint32_t journal = kNone;
    uint32_t of_program = kNone;  // those that take turns or wake each other
    bool tells_wakers = false;    // a record has
  };
  struct Device {
    uint32_t machine = 0;
    LastDone last = {};
  };
  struct Done {
    int64_t complete_ns = INT64_MAX;
    uint64_t thread = 0;
    uint32_t slot = kNone;
  };
  struct Flush {
    uint32_t device = 0;
    int64_t issue_ns = 0;
    int64_t complete_ns = INT64_MIN;
  };

  Device& DeviceOf(uint32_t index);
  uint32_t MachineOf(const IoRecord& io) { return DeviceOf(io.device).machine; }
  uint64_t ThreadOf(const IoRecord& io);
  uint64_t ProgramOf(const IoRecord& io);
  uint32_t NewChain(uint64_t thread, uint32_t machine);
  uint32_t ChainOf(const IoRecord& io);
  uint32_t LogFor(const IoRecord& io, uint32_t thread);
  std::optional<uint32_t> TakeSlot();
  void Push(uint32_t slot);
  std::optional<int64_t> EndOfFlushAfter(const Slot& write) const;
  bool KnowFlush(uint32_t slot, int64_t now_ns);
  void HappenUntil(int64_t now_ns);
  void Happened(uint32_t slot);
  void Tell(uint32_t slot, Chain* chain);
  void TellUntold(Chain* chain);
  void Name(uint32_t slot, Chain* chain);
  CommitPart PartOf(const IoRecord& io, bool of_log, Chain* chain);
  void FindWaiting(uint32_t device, uint32_t journal, int64_t within_ns,
                   std::vector<Asker>* askers);
  void FindAskers(uint32_t device, uint32_t journal, uint32_t writer);
  CommitWrites* WritesOf(uint64_t commit);
  bool AreBy(uint32_t journal, const CommitWrites& writes) const;
  const CommitWrites* WritesAfter(int64_t end_ns, uint32_t journal) const;
  const CommitWrites* WritesBy(int64_t at_ns, uint32_t journal) const;
  bool PausedFirst(uint32_t device, Chain* chain, const CommitWrites** paused_for);
  std::optional<int64_t> WokenNs(const IoRecord& io) const;
  bool NameWokenFrom(const IoRecord& io, Chain* chain, JournalWait* wait);
  void NameCommit(uint32_t record, Chain* chain, JournalWait* wait);
  uint32_t JustEnded(const IoRecord& io, const Chain& chain) const;
  void NameJustEnded(const IoRecord& io, Chain* chain, JournalWait* wait);
  void NameOfTurn(const IoRecord& io, Chain* chain);
  void NameWoken(const IoRecord& io, Chain* chain);
  uint32_t WakersLast(const IoRecord& io, const Chain& chain) const;
  void NameOthers(const IoRecord& io, Chain* chain);
  uint32_t CopyOf(uint32_t slot, uint32_t copy) const;
  uint32_t RecordFor(uint32_t slot, const Chain& chain) const;
  static bool IsJournalOf(const Chain& chain, uint32_t device);
  uint32_t LastBefore(const IoRecord& io, bool begins, const Chain& chain) const;
  const Commit* CommitAfter(const Chain& chain) const;
  bool WaitedToBeTaken(const Chain& chain) const;
  void WaitedForOwnCommit(uint32_t thread);
  uint32_t EndOf(const Chain& chain) const;
  uint32_t EndOfStarted(const Chain& chain) const;
  void Hold(uint32_t slot, uint32_t* role);
  bool IsLater(uint32_t slot, uint32_t than) const;
  void HoldLatest(uint32_t slot, uint32_t* role);
  void Release(uint32_t slot);
  void ReleaseTold();

  const uint32_t max_slots_;
  const uint32_t max_chains_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_slots_;
  std::vector<Pending> pending_;     // a heap
  std::vector<uint32_t> unflushed_;  // done, but perhaps for a flush that has not arrived yet
  std::vector<Chain> chains_;
  std::unordered_map<uint64_t, uint32_t> chain_of_thread_;
  std::optional<int64_t> first_ns_;
  uint64_t arrivals_ = 0;
  uint64_t added_ = 0;
  bool no_fua_ = false;
  std::vector<LastDone> machines_;
  std::vector<Device> devices_;
  Turns turns_;  // its slots are held here
  Wakes wakes_;
  // The last ones, in rings.
  std::array<Commit, 64> commits_;
  size_t next_commit_ = 0;
  std::array<CommitWrites, 64> writes_;  // by number
  std::array<Done, 512> done_;           // since wakers are told
  size_t next_done_ = 0;
  std::array<Flush, 64> flushes_;
  size_t next_flush_ = 0;
  std::array<uint32_t, 64> births_{};  // chains, by their first arrival
  size_t born_ = 0;
  std::array<uint32_t, 64> synced_{};  // chains, by when their sync writes completed
  size_t next_synced_ = 0;
  uint64_t commits_begun_ = 0;
  // Of the last WaitOf(), for its copies.
  Wait wait_;
  uint64_t wait_commit_ = 0;
  int64_t arrival_ns_ = 0;
  std::vector<uint32_t> gates_;          // those that all copies have, by their first copies
  std::vector<uint32_t> writers_gates_;  // those of the copy of who writes a log's commit
  std::vector<uint32_t> told_;  // what its chain was told of, held until the copies have slots
};

}  // namespace blktape
