#include "replay/plan/dependencies.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/saturating.h"
#include "base/units.h"

namespace blktape {
namespace {

// A thread that was woken by a completion goes on within this time.
constexpr int64_t kWakeNs = 200 * kNanosPerMicro;
// A flush that follows a FUA write is issued within this: another one may be under way first.
constexpr int64_t kFlushFollowsNs = 5 * kNanosPerMilli;

// Whether a thread pauses for a journal before it thinks is known once it may have so often.
constexpr int kPausesFirst = 8;
// Of so many times the earlier ones count half.
constexpr int kGoings = 64;

// By so many devices, its first ones, a journal is known.
constexpr size_t kJournalDevices = 64;

// By what a thread is known. Without an id, its program's; without both, all are one.
constexpr uint64_t kPrograms = uint64_t{1} << 40;
constexpr uint64_t kMachines = 4 * kPrograms;

uint64_t LogOf(const IoRecord& io) { return 3 * kPrograms + io.device; }

bool IsSyncWrite(const IoRecord& io) { return io.op == Op::kWrite && IsForeground(io); }

// Metadata that somebody waits for: a file system's journal.
bool IsJournal(const IoRecord& io) { return IsSyncWrite(io) && (io.flags & kFlagMeta) != 0; }

bool IsCommit(const IoRecord& io) {
  return IsJournal(io) && (io.flags & (kFlagPreflush | kFlagFua)) != 0;
}

}  // namespace

Dependencies::Dependencies(uint32_t max_slots, uint32_t max_chains,
                           const std::vector<uint32_t>& machine_of_device)
    : max_slots_(max_slots), max_chains_(max_chains), machines_(1) {
  // Numbered anew: a trace may call them anything.
  std::unordered_map<uint32_t, uint32_t> known = {{0, 0}};
  for (const uint32_t machine : machine_of_device) {
    const auto [number, added] = known.try_emplace(machine, machines_.size());
    if (added) machines_.emplace_back();
    devices_.push_back({.machine = number->second});
  }
  wakes_ = Wakes(machines_.size());
}

Dependencies::Device& Dependencies::DeviceOf(uint32_t index) {
  if (index >= devices_.size()) devices_.resize(index + 1);
  return devices_[index];
}

uint64_t Dependencies::ThreadOf(const IoRecord& io) {
  const uint64_t machine = MachineOf(io) * kMachines;
  if (io.pid) return machine + *io.pid;
  return machine + (io.process ? kPrograms + *io.process : 2 * kPrograms);
}

uint64_t Dependencies::ProgramOf(const IoRecord& io) {
  return uint64_t{MachineOf(io)} << 32 | *io.process;
}

uint32_t Dependencies::NewChain(uint64_t thread, uint32_t machine) {
  uint32_t chain = static_cast<uint32_t>(chains_.size());
  if (chain < max_chains_) {
    chains_.emplace_back();
  } else {
    const auto oldest =
        std::min_element(chains_.begin(), chains_.end(),
                         [](const Chain& a, const Chain& b) { return a.last_seen < b.last_seen; });
    chain = static_cast<uint32_t>(oldest - chains_.begin());
    chain_of_thread_.erase(oldest->thread);
    for (const uint32_t slot : oldest->untold) Release(slot);
    if (oldest->last_slot != kNone) Release(oldest->last_slot);
    if (oldest->wrote_slot != kNone) Release(oldest->wrote_slot);
    *oldest = Chain();
  }
  chains_[chain].thread = thread;
  chains_[chain].machine = machine;
  chain_of_thread_[thread] = chain;
  return chain;
}

uint32_t Dependencies::ChainOf(const IoRecord& io) {
  const uint64_t thread = ThreadOf(io);
  const auto known = chain_of_thread_.find(thread);
  if (known != chain_of_thread_.end()) return known->second;
  const uint32_t chain = NewChain(thread, MachineOf(io));
  chains_[chain].born_ns = arrival_ns_;
  births_[born_++ % births_.size()] = chain;
  return chain;
}

// The log that a thread writes itself, for a commit that may be shared: as it flushes in the
// middle, or begins with the record after a sync write. The log is at rest then, and the thread
// comes straight from what it waited for; else the commit is its own affair. kNone for what belongs
// to no such commit.
uint32_t Dependencies::LogFor(const IoRecord& io, uint32_t thread) {
  const bool journal = IsJournal(io);
  if (!journal && io.op != Op::kFlush) return kNone;
  const auto known = chain_of_thread_.find(LogOf(io));
  Chain* log = known != chain_of_thread_.end() ? &chains_[known->second] : nullptr;
  if (log != nullptr) TellUntold(log);
  Chain& writer = chains_[thread];
  if (log != nullptr && log->commit != 0 && log->writer == writer.thread) return known->second;
  if (!journal || writer.committing) return kNone;
  if (writer.writes == Writes::kUnknown && writer.synced && IsCommit(io)) {
    writer.writes = Writes::kForItself;
  }
  if (writer.writes != Writes::kForItself || !writer.any_completed) return kNone;
  const bool writes_another =
      writer.wrote_commit != 0 && writer.wrote_slot == kNone && writer.wrote_log != LogOf(io);
  if (writes_another) return kNone;
  int64_t since_ns = writer.told_ns;
  if (log != nullptr) {
    if (log->out > 0) return kNone;
    since_ns = std::max(since_ns, log->told_ns);
  }
  if (SaturatingSubtract(arrival_ns_, since_ns) > 2 * kWakeNs) return kNone;
  if (log == nullptr) return NewChain(LogOf(io), writer.machine);
  log->committing = false;  // also one whose record never came
  return known->second;
}

void Dependencies::Hold(uint32_t slot, uint32_t* role) {
  ++slots_[slot].uses;
  if (*role != kNone) Release(*role);
  *role = slot;
}

void Dependencies::Release(uint32_t slot) {
  BLKTAPE_CHECK(slots_[slot].uses > 0);
  if (--slots_[slot].uses > 0) return;
  for (; slot != kNone; slot = slots_[slot].next_copy) free_slots_.push_back(slot);
}

// The first one where there are not so many.
uint32_t Dependencies::CopyOf(uint32_t slot, uint32_t copy) const {
  uint32_t found = slot;
  for (; copy > 0 && found != kNone; --copy) found = slots_[found].next_copy;
  return found != kNone ? found : slot;
}

// Of two that completed at the same time the one that arrived later.
bool Dependencies::IsLater(uint32_t slot, uint32_t than) const {
  const Slot& a = slots_[slot];
  const Slot& b = slots_[than];
  return a.complete_ns != b.complete_ns ? a.complete_ns > b.complete_ns : a.number > b.number;
}

// A FUA write that no flush followed may be the earlier: that is known only afterwards.
void Dependencies::HoldLatest(uint32_t slot, uint32_t* role) {
  if (*role == kNone || IsLater(slot, *role)) Hold(slot, role);
}

void Dependencies::Push(uint32_t slot) {
  pending_.push_back({slots_[slot].complete_ns, slots_[slot].number, slot});
  std::push_heap(pending_.begin(), pending_.end());
}

// The end of the first flush that is issued after a FUA write, which stands for FUA, where that has
// arrived.
std::optional<int64_t> Dependencies::EndOfFlushAfter(const Slot& write) const {
  const Flush* first = nullptr;
  for (size_t i = 0; i < flushes_.size(); ++i) {
    const Flush& flush = flushes_[(next_flush_ + i) % flushes_.size()];
    if (flush.device != write.device || flush.complete_ns <= write.complete_ns) continue;
    if (flush.issue_ns < write.complete_ns ||
        flush.issue_ns > write.complete_ns + kFlushFollowsNs) {
      continue;
    }
    if (first == nullptr || flush.issue_ns < first->issue_ns) first = &flush;
  }
  if (first == nullptr) return std::nullopt;
  return first->complete_ns;
}

// Whoever waits for a FUA write waits for the flush that stands for FUA, too. A write whose flush
// has not arrived is taken for complete once none can come any more; false until then.
bool Dependencies::KnowFlush(uint32_t slot, int64_t now_ns) {
  Slot& write = slots_[slot];
  const std::optional<int64_t> end_ns = EndOfFlushAfter(write);
  if (!end_ns && now_ns <= write.complete_ns + kFlushFollowsNs) return false;
  write.complete_ns = end_ns.value_or(write.complete_ns);
  for (uint32_t copy = write.next_copy; copy != kNone; copy = slots_[copy].next_copy) {
    slots_[copy].complete_ns = write.complete_ns;
  }
  write.flush_follows = false;
  Push(slot);
  return true;
}

void Dependencies::Happened(uint32_t slot) {
  const Slot& done = slots_[slot];
  Chain& chain = chains_[done.chain];
  LastDone& of_machine = machines_[chain.machine];
  chain.any_completed = true;
  if (chain.out > 0) --chain.out;
  chain.idle = {};
  if (done.program) {
    uint32_t* const last = turns_.End(*done.program, done.complete_ns, &chain.idle);
    if (last != nullptr) HoldLatest(slot, last);
    chain.idle_after_ns = wakes_.End(chain.machine, done.complete_ns);
    HoldLatest(slot, &of_machine.of_program);
  }
  if (of_machine.tells_wakers && !done.journal && done.commit_number == 0) {
    Done& latest = done_[next_done_++ % done_.size()];
    Hold(slot, &latest.slot);
    latest = {.complete_ns = done.complete_ns, .thread = chain.thread, .slot = slot};
  }
  if (done.sync) synced_[next_synced_++ % synced_.size()] = done.chain;
  chain.last_complete_ns = std::max(chain.last_complete_ns, done.complete_ns);
  chain.untold.push_back(slot);  // takes over its use as a pending one
  HoldLatest(slot, &chain.last_slot);
  HoldLatest(slot, &of_machine.any);
  HoldLatest(slot, &devices_[done.device].last.any);
  if (done.journal) {
    HoldLatest(slot, &of_machine.journal);
    for (const uint32_t device : chain.journal_on) {
      HoldLatest(slot, &devices_[device].last.journal);
    }
  }
  if (!done.commit) {
    CommitWrites* const writes = done.journal ? WritesOf(done.commit_number) : nullptr;
    if (writes != nullptr) {
      writes->complete_ns = std::max(writes->complete_ns, done.complete_ns);
    }
    return;
  }
  Commit& commit = commits_[next_commit_];
  next_commit_ = (next_commit_ + 1) % commits_.size();
  Hold(slot, &commit.slot);
  commit.from_ns = chain.committing ? chain.commit_from_ns : done.arrival_ns;
  commit.complete_ns = done.complete_ns;
  chain.committing = false;
  chain.committed = true;
  if (done.commit_number == 0) return;
  const auto writer = chain_of_thread_.find(chain.writer);
  if (writer == chain_of_thread_.end()) return;
  Chain& waits = chains_[writer->second];
  if (waits.wrote_commit == done.commit_number) Hold(slot, &waits.wrote_slot);
}

void Dependencies::HappenUntil(int64_t now_ns) {
  while (!pending_.empty() && pending_.front().complete_ns <= now_ns) {
    std::pop_heap(pending_.begin(), pending_.end());
    const uint32_t slot = pending_.back().slot;
    pending_.pop_back();
    if (!slots_[slot].flush_follows) {
      Happened(slot);
    } else if (!KnowFlush(slot, now_ns)) {
      unflushed_.push_back(slot);
    }
  }
}

void Dependencies::ReleaseTold() {
  for (const uint32_t slot : told_) Release(slot);
  told_.clear();
}

void Dependencies::Arrive(const IoRecord& io, bool no_fua) {
  ReleaseTold();
  const std::optional<int64_t> arrival_ns = io.arrival_ns();
  if (!arrival_ns) return;
  if (!first_ns_) first_ns_ = arrival_ns;
  no_fua_ = no_fua;
  if (io.op == Op::kFlush && no_fua && io.complete_ns) {
    flushes_[next_flush_] = {.device = io.device,
                             .issue_ns = io.issue_ns.value_or(*arrival_ns),
                             .complete_ns = *io.complete_ns};
    next_flush_ = (next_flush_ + 1) % flushes_.size();
  }
  std::erase_if(unflushed_, [&](uint32_t slot) { return KnowFlush(slot, *arrival_ns); });
  HappenUntil(*arrival_ns);
}

void Dependencies::Tell(uint32_t slot, Chain* chain) {
  chain->told_ns = std::max(chain->told_ns, slots_[slot].complete_ns);
}

void Dependencies::TellUntold(Chain* chain) {
  for (const uint32_t slot : chain->untold) Tell(slot, chain);
}

void Dependencies::Name(uint32_t slot, Chain* chain) {
  gates_.push_back(slot);
  Tell(slot, chain);
}

// Whether it writes a journal on this device: perhaps to other disks of the same array, too.
bool Dependencies::IsJournalOf(const Chain& chain, uint32_t device) {
  return std::ranges::find(chain.journal_on, device) != chain.journal_on.end();
}

// The first commit that began after the chain's sync write had completed: only then does a file
// system write down where new data are. Without one, the first that began after it arrived. The
// first is the one that ended first. Of another device's journal only where none is known of this
// one.
const Dependencies::Commit* Dependencies::CommitAfter(const Chain& chain) const {
  const bool known = devices_[chain.device].last.journal != kNone;
  const Commit* after_complete = nullptr;
  const Commit* after_arrival = nullptr;
  const auto take = [this](const Commit& commit, const Commit** first) {
    if (*first == nullptr || IsLater((*first)->slot, commit.slot)) *first = &commit;
  };
  for (const Commit& commit : commits_) {
    if (commit.slot == kNone || commit.complete_ns <= chain.last_complete_ns) continue;
    const Chain& writer = chains_[slots_[commit.slot].chain];
    if (known ? !IsJournalOf(writer, chain.device) : writer.machine != chain.machine) continue;
    if (commit.from_ns >= chain.last_complete_ns) take(commit, &after_complete);
    if (commit.from_ns >= chain.synced_ns) take(commit, &after_arrival);
  }
  return after_complete != nullptr ? after_complete : after_arrival;
}

// Of a commit record the copy that the chain asked for, or the first one.
uint32_t Dependencies::RecordFor(uint32_t slot, const Chain& chain) const {
  const uint64_t number = slots_[slot].commit_number;
  return number != 0 && chain.asked_commit == number ? CopyOf(slot, chain.asked_copy) : slot;
}

// The last that a chain has waited for by now: its own I/O, or the commit after that.
uint32_t Dependencies::EndOf(const Chain& chain) const {
  if (chain.wrote_slot != kNone) return RecordFor(chain.wrote_slot, chain);
  const Commit* commit = chain.synced ? CommitAfter(chain) : nullptr;
  return commit != nullptr ? RecordFor(commit->slot, chain) : chain.last_slot;
}

// Of the threads that had their first I/O since the chain's last one, the end that came last: a
// program waits for the ones it started.
uint32_t Dependencies::EndOfStarted(const Chain& chain) const {
  uint32_t last = kNone;
  for (size_t i = 0; i < std::min(born_, births_.size()); ++i) {
    const Chain& started = chains_[births_[i]];
    if (started.born_ns <= chain.arrival_ns || started.last_slot == kNone || !started.works ||
        started.machine != chain.machine) {
      continue;
    }
    const uint32_t end = EndOf(started);
    if (slots_[end].complete_ns <= chain.told_ns) continue;
    if (last == kNone || IsLater(end, last)) last = end;
  }
  return last;
}

// Which part of a commit that may be shared the next I/O of a thread, or of a log, is. Who has not
// written a commit record yet may be no journal's thread. A commit that a journal's thread writes
// with its record alone is not shared.
Dependencies::CommitPart Dependencies::PartOf(const IoRecord& io, bool of_log, Chain* chain) {
  wait_commit_ = 0;
  if (!of_log && !IsJournal(io)) return CommitPart::kNone;
  const bool record = IsCommit(io);
  if (!chain->committing) {
    const bool for_others = chain->committed && chain->writes != Writes::kForItself && !record;
    if (for_others) chain->writes = Writes::kForOthers;
    if (of_log || for_others) wait_commit_ = ++commits_begun_;
    chain->commit = record ? 0 : wait_commit_;
    if (wait_commit_ == 0) return CommitPart::kNone;
    return record ? CommitPart::kWhole : CommitPart::kBegins;
  }
  wait_commit_ = chain->commit;
  if (wait_commit_ == 0) return CommitPart::kNone;
  if (!record) return CommitPart::kWithin;
  chain->commit = 0;
  return CommitPart::kEnds;
}

// The threads that wait for a commit of that journal, by what they did last, in which `within_ns`
// have passed at most since that, and since the journal was at rest. They have asked for it then.
void Dependencies::FindWaiting(uint32_t device, uint32_t journal, int64_t within_ns,
                               std::vector<Asker>* askers) {
  const Chain& own = chains_[journal];
  for (size_t i = 0; i < std::min(next_synced_, synced_.size()); ++i) {
    const uint32_t number = synced_[i];
    const Chain& chain = chains_[number];
    if (number == journal || chain.asked_commit == wait_commit_ || !chain.synced || chain.out > 0 ||
        chain.last_slot == kNone) {
      continue;
    }
    const Slot& last = slots_[chain.last_slot];
    const int64_t since_ns = std::max(own.told_ns, last.complete_ns);
    if (last.device != device || last.complete_ns <= own.commit_from_ns ||
        SaturatingSubtract(arrival_ns_, since_ns) > within_ns) {
      continue;
    }
    chains_[number].asked_commit = wait_commit_;
    askers->push_back({.slot = chain.last_slot,
                       .number = last.number,
                       .chain = number,
                       .complete_ns = last.complete_ns});
  }
}

// Of the commit that begins: the threads that had a sync write, now complete, as their last I/O,
// when no commit had begun since; but none whose write was complete, and the journal at rest, for
// too long to have caused it, unless nobody else could. And who writes it itself, if that is known.
// In the order of these completions.
void Dependencies::FindAskers(uint32_t device, uint32_t journal, uint32_t writer) {
  Chain& own = chains_[journal];
  own.askers.clear();
  if (writer != kNone) {
    Chain& chain = chains_[writer];
    chain.asked_commit = wait_commit_;
    // Not straight after its own I/O: it asked during the commit before, for which it waited then.
    const bool waited = SaturatingSubtract(arrival_ns_, chain.told_ns) > 2 * kWakeNs;
    const int64_t busy_after_ns = SaturatingSubtract(own.commit_from_ns, chain.told_ns);
    own.askers.push_back({.number = slots_[chain.last_slot].number,
                          .chain = writer,
                          .complete_ns = chain.told_ns,
                          .asks_after_ns = waited ? std::max<int64_t>(0, busy_after_ns) : 0});
  }
  FindWaiting(device, journal, 2 * kWakeNs, &own.askers);
  // Else the journal's thread was held up, or who asked.
  if (own.askers.empty()) FindWaiting(device, journal, INT64_MAX, &own.askers);
  std::ranges::sort(own.askers, {},
                    [](const Asker& asker) { return std::pair(asker.complete_ns, asker.number); });
  for (size_t i = 0; i < own.askers.size(); ++i) {
    chains_[own.askers[i].chain].asked_copy = i < kMaxCopies ? static_cast<uint32_t>(i) : 0;
  }
  if (own.askers.size() > kMaxCopies) own.askers.resize(kMaxCopies);
}

Dependencies::CommitWrites* Dependencies::WritesOf(uint64_t commit) {
  CommitWrites& writes = writes_[commit % writes_.size()];
  return commit != 0 && writes.commit == commit ? &writes : nullptr;
}

bool Dependencies::AreBy(uint32_t journal, const CommitWrites& writes) const {
  return writes.chain == journal && writes.commit != 0 &&
         writes.commit + writes_.size() > commits_begun_;
}

// Of the journal's commits that may be shared the one that was being written at that time, or that
// began at once; null if there is none.
const Dependencies::CommitWrites* Dependencies::WritesAfter(int64_t end_ns,
                                                            uint32_t journal) const {
  const CommitWrites* after = nullptr;
  for (const CommitWrites& writes : writes_) {
    if (!AreBy(journal, writes) || SaturatingSubtract(writes.from_ns, end_ns) > kWakeNs ||
        (writes.recorded && writes.complete_ns <= end_ns)) {
      continue;
    }
    if (after == nullptr || writes.commit > after->commit) after = &writes;
  }
  return after;
}

// Of the journal's commits that may be shared the last one to begin by then.
const Dependencies::CommitWrites* Dependencies::WritesBy(int64_t at_ns, uint32_t journal) const {
  const CommitWrites* last = nullptr;
  for (const CommitWrites& writes : writes_) {
    if (!AreBy(journal, writes) || writes.from_ns > at_ns) continue;
    if (last == nullptr || writes.commit > last->commit) last = &writes;
  }
  return last;
}

// Whether the thread waited, before it thought, for what a journal wrote: as who unlinks or renames
// a file once that is durable. Then it thinks as long as at other times, but not before these
// writes are complete; who waits for them after it thought goes on just then more often than at
// other times. Counts both. `paused_for`: these writes, where they are known.
bool Dependencies::PausedFirst(uint32_t device, Chain* chain, const CommitWrites** paused_for) {
  const uint32_t last_journal = devices_[device].last.journal;
  if (last_journal == kNone) return false;
  const Slot& last = slots_[last_journal];
  if (last.commit_number == 0) return false;
  const auto count = [](bool at_once, int* all, int* those) {
    ++*all;
    if (at_once) ++*those;
    if (*all < kGoings) return;
    *all /= 2;
    *those /= 2;
  };
  Goings& goings = chain->goings;
  const CommitWrites* const writes = WritesAfter(chain->told_ns, last.chain);
  const int64_t thought_ns = SaturatingSubtract(arrival_ns_, chain->told_ns);
  bool at_once = false;
  if (writes == nullptr) {
    count(thought_ns <= kWakeNs, &goings.apart, &goings.apart_at_once);
  } else {
    at_once = !writes->recorded || SaturatingSubtract(arrival_ns_, writes->complete_ns) <= kWakeNs;
    count(at_once, &goings.after, &goings.after_at_once);
  }
  if (at_once || thought_ns <= 2 * kWakeNs || goings.after < kPausesFirst ||
      goings.after_at_once * std::max(goings.apart, 1) > goings.apart_at_once * goings.after) {
    return false;
  }
  *paused_for = writes;
  return true;
}

// When the thread was woken before this I/O, as far as that is known.
std::optional<int64_t> Dependencies::WokenNs(const IoRecord& io) const {
  if (!io.waker || !io.since_wake_ns) return std::nullopt;
  const auto since_ns = static_cast<int64_t>(std::min<uint64_t>(*io.since_wake_ns, INT64_MAX));
  return SaturatingSubtract(arrival_ns_, since_ns);
}

// What a journal's thread woke the thread from, later than all it was told of: the end of a commit
// that it did not ask for with an I/O of its own; what that journal writes; or one after the other.
bool Dependencies::NameWokenFrom(const IoRecord& io, Chain* chain, JournalWait* wait) {
  const std::optional<int64_t> woken_ns = WokenNs(io);
  if (!woken_ns || *woken_ns <= chain->told_ns) return false;
  const auto known = chain_of_thread_.find(chain->machine * kMachines + *io.waker);
  if (known == chain_of_thread_.end()) return false;
  const Chain& journal = chains_[known->second];
  if (journal.writes != Writes::kForOthers || slots_[journal.last_slot].commit_number == 0) {
    return false;
  }
  const Commit* ended = nullptr;  // the last one by then
  for (const Commit& commit : commits_) {
    if (commit.slot == kNone || commit.complete_ns > *woken_ns ||
        slots_[commit.slot].chain != known->second) {
      continue;
    }
    if (ended == nullptr || IsLater(commit.slot, ended->slot)) ended = &commit;
  }
  const bool waited = ended != nullptr && ended->complete_ns > chain->told_ns;
  const CommitWrites* under_way = nullptr;
  if (!waited || SaturatingSubtract(*woken_ns, ended->complete_ns) > kWakeNs) {
    under_way = WritesBy(*woken_ns, known->second);
    if (under_way == nullptr || (ended != nullptr && under_way->from_ns <= ended->from_ns)) {
      return false;
    }
    const bool complete = under_way->complete_ns != INT64_MIN;
    if (complete && SaturatingSubtract(*woken_ns, under_way->complete_ns) > kWakeNs) return false;
  }
  if (waited) NameCommit(ended->slot, chain, wait);
  if (under_way == nullptr) return true;
  wait->slot = journal.last_slot;
  if (wait->how != 0) wait->how |= kAndTheNext;
  const bool before = under_way->complete_ns != INT64_MIN && under_way->complete_ns < *woken_ns;
  chain->told_ns = std::max(chain->told_ns, before ? under_way->complete_ns : *woken_ns);
  const int64_t since_ns = SaturatingSubtract(arrival_ns_, chain->told_ns);
  if (since_ns > kWakeNs) return true;
  chain->shares_blocks = true;
  chain->goes_on_ns = since_ns;
  return true;
}

// A thread waited to the end of a commit. If that was of others it waits for whichever is under way
// then.
void Dependencies::NameCommit(uint32_t record, Chain* chain, JournalWait* wait) {
  const CommitWrites* const writes = WritesOf(slots_[record].commit_number);
  if (writes == nullptr || !writes->of_others) {
    Name(record, chain);
    return;
  }
  *wait = {.slot = record, .how = kToTheEnd};
  Tell(record, chain);
}

// The journal write that completed just before an I/O that nothing else explains, if any, or before
// its thread was woken by who writes that journal: of that I/O's device, or of where its thread was
// before; of another one only where none is known of these.
uint32_t Dependencies::JustEnded(const IoRecord& io, const Chain& chain) const {
  // Who writes to the journal for itself (ends a file system) has waited for its thread; to be
  // woken by that takes longer, since it has work to do after a commit.
  const int64_t at_most_ns = IsJournal(io) ? 2 * kWakeNs : kWakeNs;
  const std::optional<int64_t> woken_ns = WokenNs(io);
  const auto just_ended = [&](uint32_t slot) {
    if (slot == kNone || slots_[slot].complete_ns <= chain.told_ns) return false;
    const Slot& last = slots_[slot];
    const Chain& journal = chains_[last.chain];
    const uint64_t writer = journal.writer != 0 ? journal.writer : journal.thread;
    const bool by_it = woken_ns && *woken_ns >= last.complete_ns &&
                       writer == chain.machine * kMachines + *io.waker;
    const int64_t went_on_ns = by_it ? *woken_ns : arrival_ns_;
    return SaturatingSubtract(went_on_ns, last.complete_ns) <= at_most_ns;
  };
  const uint32_t here = devices_[io.device].last.journal;
  const uint32_t before = devices_[chain.device].last.journal;
  for (const uint32_t slot : {here, before}) {
    if (just_ended(slot)) return slot;
  }
  const uint32_t any = machines_[chain.machine].journal;
  return here == kNone && before == kNone && just_ended(any) ? any : kNone;
}

// Its thread waited for that.
void Dependencies::NameJustEnded(const IoRecord& io, Chain* chain, JournalWait* wait) {
  const uint32_t slot = JustEnded(io, *chain);
  if (slot == kNone) return;
  const Slot& last = slots_[slot];
  if (last.commit) {
    NameCommit(slot, chain, wait);
    return;
  }
  if (last.commit_number == 0) {
    Name(slot, chain);
    return;
  }
  // A commit that began when the thread was woken, and is over, was waited for before that.
  const CommitWrites* const passed = WritesAfter(chain->told_ns, last.chain);
  const bool after_one = passed != nullptr && passed->commit != last.commit_number;
  *wait = {.slot = slot, .how = after_one ? kToTheEnd | kAndTheNext : 0};
  chain->shares_blocks = true;
  chain->goes_on_ns = SaturatingSubtract(arrival_ns_, last.complete_ns);
  Tell(slot, chain);
}

// A thread that is handed work in turns with others of its program waits for what they did, not for
// its own last I/O.
void Dependencies::NameOfTurn(const IoRecord& io, Chain* chain) {
  if (!io.process) return;
  const Turns::Idle idle = chain->out == 0 ? chain->idle : Turns::Idle();
  const uint32_t last = turns_.Next(ProgramOf(io), idle, arrival_ns_);
  if (last != kNone && slots_[last].complete_ns > chain->told_ns) Name(last, chain);
}

// A thread that others wake, and that begins an I/O just after one of theirs, waited for that.
void Dependencies::NameWoken(const IoRecord& io, Chain* chain) {
  const uint32_t last = machines_[chain->machine].of_program;
  if (!io.process || last == kNone || chain->out > 0) return;
  const uint64_t program = ProgramOf(io);
  const int64_t last_ns = slots_[last].complete_ns;
  if (chain->idle.program == program && chain->idle.since_ns == chain->told_ns) {
    wakes_.Next(program, chain->machine, chain->told_ns, chain->idle_after_ns, last_ns,
                arrival_ns_);
  }
  if (last_ns > chain->told_ns && SaturatingSubtract(arrival_ns_, last_ns) <= Wakes::kWithinNs &&
      wakes_.AreWoken(program)) {
    Name(last, chain);
  }
}

// Of the I/Os of who woke the thread the one that completed last before that; kNone if that was
// before what the thread has been told of.
uint32_t Dependencies::WakersLast(const IoRecord& io, const Chain& chain) const {
  const std::optional<int64_t> woken_ns = WokenNs(io);
  if (!woken_ns) return kNone;
  const uint64_t waker = chain.machine * kMachines + *io.waker;
  uint32_t last = kNone;
  for (const Done& done : done_) {
    if (done.thread != waker || done.complete_ns > *woken_ns || done.complete_ns <= chain.told_ns) {
      continue;
    }
    if (last == kNone || IsLater(done.slot, last)) last = done.slot;
  }
  return last;
}

// What an I/O that nothing else explains has waited for, of other threads.
void Dependencies::NameOthers(const IoRecord& io, Chain* chain) {
  const bool journal = IsJournal(io);
  const auto unexplained = [&] {
    return SaturatingSubtract(arrival_ns_, chain->told_ns) > 2 * kWakeNs;
  };
  JournalWait wait;
  const Commit* commit = chain->synced && !journal ? CommitAfter(*chain) : nullptr;
  if (commit != nullptr) {
    const Slot& record = slots_[commit->slot];
    if (record.commit_number == chain->asked_commit) {
      Name(RecordFor(commit->slot, *chain), chain);
    } else {
      NameCommit(commit->slot, chain, &wait);
    }
    Chain& writes = chains_[record.chain];
    if (writes.commit != 0) chain->shares_blocks = false;
    const bool others = record.commit_number != 0 && record.commit_number == chain->asked_commit &&
                        writes.thread == LogOf(io);
    if (io.op == Op::kFlush && others && !unexplained()) {
      gates_.back() |= kIfLeftOut;
      wait_.flushes_after = record.chain;
      writes.others_flush = true;
    }
  }
  const CommitWrites* paused_for = nullptr;
  const bool paused = !journal && chain->synced && PausedFirst(io.device, chain, &paused_for);
  if (journal || !NameWokenFrom(io, chain, &wait)) {
    if (paused) {
      wait.slot = devices_[io.device].last.journal;
      if (wait.how != 0) wait.how |= kAndTheNext;
    }
    if (paused_for != nullptr) {
      chain->told_ns = std::max(chain->told_ns, paused_for->complete_ns);
    }
    if (unexplained()) NameJustEnded(io, chain, &wait);
  }
  if (wait.slot != kNone) gates_.push_back(wait.slot | kWhileWriting | wait.how);
  // What it changes may lie in a block that the journal is writing, or not: as it did before.
  if (commit != nullptr && chain->shares_blocks && slots_[commit->slot].commit_number != 0) {
    gates_.push_back(commit->slot | kWhileWriting | kAfterThink);
    wait_.goes_on_ns = chain->goes_on_ns;
  }
  if (!journal && machines_[chain->machine].tells_wakers) {
    const uint32_t last = WakersLast(io, *chain);
    if (last != kNone) Name(last, chain);
  } else if (!journal) {
    NameOfTurn(io, chain);
    if (unexplained()) NameWoken(io, chain);
  }
  const uint32_t started = !journal && unexplained() ? EndOfStarted(*chain) : kNone;
  if (started != kNone) Name(started, chain);
}

// What completed last: for a commit that begins where its journal is, else of all.
uint32_t Dependencies::LastBefore(const IoRecord& io, bool begins, const Chain& chain) const {
  uint32_t last = kNone;
  const auto take = [&](uint32_t slot) {
    if (last == kNone || (slot != kNone && IsLater(slot, last))) last = slot;
  };
  if (begins) {
    take(devices_[io.device].last.any);
    for (const uint32_t device : chain.journal_on) take(devices_[device].last.any);
  }
  return last != kNone ? last : machines_[chain.machine].any;
}

// Whether the I/O before, of the same commit, had to wait for the kernel to take it: what comes
// after it was held up by that, not by thinking.
bool Dependencies::WaitedToBeTaken(const Chain& chain) const {
  return SaturatingSubtract(arrival_ns_, chain.arrival_ns) > 2 * kWakeNs &&
         SaturatingSubtract(arrival_ns_, chain.issue_ns) <= kWakeNs;
}

// The thread goes on after a commit that it wrote, the first of writers_gates_. Where others flush
// after such a commit a flush takes its place, needed if the replay wrote another's copy.
void Dependencies::WaitedForOwnCommit(uint32_t thread) {
  Chain& chain = chains_[thread];
  if (chain.wrote_slot == kNone) return;
  told_.push_back(std::exchange(chain.wrote_slot, kNone));
  chain.wrote_commit = 0;
  const auto log = chain_of_thread_.find(chain.wrote_log);
  if (log == chain_of_thread_.end() || !chains_[log->second].others_flush) return;
  const std::optional<uint32_t> slot = TakeSlot();
  if (!slot) return;
  const uint32_t record = std::exchange(writers_gates_.front(), *slot);
  slots_[*slot] = {.uses = 1};  // it is named by what follows, and never completes here
  told_.push_back(*slot);
  wait_.flush_first = {
      .log = log->second, .chain = thread, .gate = record | kIfLeftOut, .slot = *slot};
}

Dependencies::Wait Dependencies::WaitOf(const IoRecord& io, std::vector<uint32_t>* gates,
                                        bool of_worker) {
  arrival_ns_ = *io.arrival_ns();
  gates_.clear();
  writers_gates_.clear();
  const uint32_t thread = ChainOf(io);
  if (io.waker) machines_[chains_[thread].machine].tells_wakers = true;
  chains_[thread].last_seen = ++arrivals_;
  TellUntold(&chains_[thread]);
  if (chains_[thread].wrote_slot != kNone) {
    writers_gates_.push_back(RecordFor(chains_[thread].wrote_slot, chains_[thread]));
    Tell(writers_gates_.back(), &chains_[thread]);
  }
  const uint32_t log = LogFor(io, thread);
  const uint32_t number = log != kNone ? log : thread;
  Chain& chain = chains_[number];
  chain.last_seen = arrivals_;
  wait_ = {.chain = number, .part = PartOf(io, log != kNone, &chain)};
  const bool journal = IsJournal(io);
  const bool begins = journal && !chain.committing;
  if (Begins(wait_.part)) FindAskers(io.device, number, log != kNone ? thread : kNone);
  const bool within = wait_.part == CommitPart::kWithin || wait_.part == CommitPart::kEnds;
  const bool asked = wait_.part != CommitPart::kNone && !chain.askers.empty();
  for (const uint32_t slot : chain.untold) {
    const uint64_t commit = slots_[slot].chain == number ? slots_[slot].commit_number : 0;
    // One that was asked for comes after whichever commit is under way then. That one waits for
    // nothing but itself: else it could be for what waits for its end.
    const bool named = within ? commit == wait_commit_ : !asked || commit == 0;
    if (named) gates_.push_back(slot);
  }
  told_.swap(chain.untold);
  Chain& writer = chains_[thread];
  if (log == kNone || begins) WaitedForOwnCommit(thread);
  if (log == kNone) {
    gates_.insert(gates_.end(), writers_gates_.begin(), writers_gates_.end());
  } else if (begins) {
    writers_gates_.insert(writers_gates_.end(), writer.untold.begin(), writer.untold.end());
    // Also if the thread was told of it before: the copy follows nothing else of its chain.
    if (std::ranges::find(writer.untold, writer.last_slot) == writer.untold.end()) {
      writers_gates_.push_back(writer.last_slot);
    }
    writer.wrote_commit = wait_commit_;
    writer.wrote_log = LogOf(io);
    writer.synced = false;
    chain.writer = writer.thread;
  }

  const bool goes_on_writing = within || (journal && !begins);
  const uint32_t last = LastBefore(io, begins, chain);
  if (goes_on_writing && last != kNone && WaitedToBeTaken(chain)) Tell(last, &chain);
  // What a worker does next has nothing to do with what it did before.
  const bool for_another = of_worker && !journal && io.op != Op::kFlush;
  const bool of_none = begins || !chain.any_completed || !IsForeground(io) || for_another;
  const bool may_be_woken = !journal && IsForeground(io) && wait_.part == CommitPart::kNone;
  const uint32_t wakers = of_none && may_be_woken ? WakersLast(io, chain) : kNone;
  if (wakers != kNone) {
    Name(wakers, &chain);
  } else if (of_none) {
    if (!asked && last != kNone && slots_[last].complete_ns > chain.told_ns) Name(last, &chain);
  } else if (!within) {
    NameOthers(io, &chain);
  }
  if (wait_.part == CommitPart::kBegins) {
    // Else somebody had asked for it during the one before.
    const bool slept = SaturatingSubtract(arrival_ns_, chain.last_complete_ns) > 2 * kWakeNs &&
                       (io.waker || !machines_[chain.machine].tells_wakers);
    writes_[wait_commit_ % writes_.size()] = {.commit = wait_commit_,
                                              .chain = number,
                                              .from_ns = arrival_ns_,
                                              .of_others = asked || !slept};
  } else if (CommitWrites* const writes = WritesOf(wait_commit_); writes && Ends(wait_.part)) {
    writes->recorded = true;
  }
  chain.works = chain.works || !journal;
  if (chain.committing && io.op == Op::kFlush) chain.writes = Writes::kForItself;
  if (begins) {
    chain.committing = true;
    chain.commit_from_ns = arrival_ns_;
  }
  chain.synced = IsSyncWrite(io) && !journal;
  chain.synced_ns = arrival_ns_;
  chain.device = io.device;
  if (journal && chain.journal_on.size() < kJournalDevices && !IsJournalOf(chain, io.device)) {
    chain.journal_on.push_back(io.device);
  }
  chain.arrival_ns = arrival_ns_;
  chain.issue_ns = io.issue_ns.value_or(arrival_ns_);
  if (wait_.part != CommitPart::kNone) {
    wait_.asked = asked;
    wait_.copies = std::max<uint32_t>(1, static_cast<uint32_t>(chain.askers.size()));
  }
  // The other copies name these once the first one has its slot, which must be none of them.
  if (wait_.copies == 1) ReleaseTold();
  return WaitOfCopy(0, gates);
}

Dependencies::Wait Dependencies::WaitOfCopy(uint32_t copy, std::vector<uint32_t>* gates) const {
  const Chain& chain = chains_[wait_.chain];
  Wait wait = wait_;
  int64_t from_ns = chain.told_ns;
  for (const uint32_t gate : gates_) {
    const bool its_own = wait_commit_ != 0 && (gate & kWhileWriting) == 0 &&
                         slots_[gate].commit_number == wait_commit_;
    gates->push_back(its_own ? CopyOf(gate, copy) : gate);
  }
  if (wait.asked) {
    const Asker& asker = chain.askers[copy];
    if (Begins(wait.part)) {
      wait.asks_after_ns = asker.asks_after_ns;
      if (asker.slot != kNone) {
        gates->push_back(asker.slot);
      } else {
        gates->insert(gates->end(), writers_gates_.begin(), writers_gates_.end());
      }
    }
    from_ns = std::max(from_ns, asker.complete_ns);
  }
  from_ns = std::max(from_ns, *first_ns_);
  wait.think_ns = std::max<int64_t>(0, SaturatingSubtract(arrival_ns_, from_ns));
  return wait;
}

std::optional<uint32_t> Dependencies::TakeSlot() {
  if (free_slots_.empty()) {
    if (slots_.size() >= max_slots_) return std::nullopt;
    slots_.emplace_back();
    return static_cast<uint32_t>(slots_.size() - 1);
  }
  const uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

std::optional<uint32_t> Dependencies::Add(const IoRecord& io) {
  if (!io.complete_ns) return std::nullopt;
  const std::optional<uint32_t> slot = TakeSlot();
  if (!slot) return std::nullopt;
  ++chains_[wait_.chain].out;
  slots_[*slot] = {.number = added_++,
                   .arrival_ns = *io.arrival_ns(),
                   .complete_ns = *io.complete_ns,
                   .device = io.device,
                   .chain = wait_.chain,
                   .uses = 1,
                   .commit_number = wait_commit_,
                   .flush_follows = no_fua_ && io.op == Op::kWrite && (io.flags & kFlagFua) != 0,
                   .sync = IsSyncWrite(io) && !IsJournal(io),
                   .journal = IsJournal(io),
                   .commit = IsCommit(io)};
  if (io.process && IsForeground(io) && !IsJournal(io) && wait_commit_ == 0) {
    slots_[*slot].program = ProgramOf(io);
    const uint32_t gone = turns_.Begin(ProgramOf(io), *io.arrival_ns(), *io.complete_ns);
    if (gone != kNone) Release(gone);
  }
  Push(*slot);
  return slot;
}

std::optional<uint32_t> Dependencies::AddCopy(uint32_t slot) {
  const std::optional<uint32_t> added = TakeSlot();
  if (!added) return std::nullopt;
  slots_[*added] = slots_[slot];
  slots_[*added].next_copy = kNone;
  while (slots_[slot].next_copy != kNone) slot = slots_[slot].next_copy;
  slots_[slot].next_copy = *added;
  return added;
}

}  // namespace blktape
