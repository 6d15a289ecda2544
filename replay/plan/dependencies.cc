#include "replay/plan/dependencies.h"

#include <algorithm>

#include "base/check.h"
#include "base/saturating.h"
#include "base/units.h"

namespace blktape {
namespace {

// A thread that was woken by a completion goes on within this time.
constexpr int64_t kWakeNs = 200 * kNanosPerMicro;
// A flush that follows a FUA write is issued within this: another one may be under way first.
constexpr int64_t kFlushFollowsNs = 5 * kNanosPerMilli;

// By what a thread is known. Without an id, its program's; without both, all are one.
uint64_t ThreadOf(const IoRecord& io) {
  if (io.pid) return *io.pid;
  constexpr uint64_t kPrograms = uint64_t{1} << 40;
  return io.process ? kPrograms + *io.process : 2 * kPrograms;
}

bool IsSyncWrite(const IoRecord& io) { return io.op == Op::kWrite && IsForeground(io); }

// Metadata that somebody waits for: a file system's journal, written on behalf of others.
bool IsJournal(const IoRecord& io) { return IsSyncWrite(io) && (io.flags & kFlagMeta) != 0; }

bool IsCommit(const IoRecord& io) {
  return IsJournal(io) && (io.flags & (kFlagPreflush | kFlagFua)) != 0;
}

}  // namespace

Dependencies::Dependencies(uint32_t max_slots, uint32_t max_chains)
    : max_slots_(max_slots), max_chains_(max_chains) {}

uint32_t Dependencies::ChainOf(const IoRecord& io) {
  const uint64_t thread = ThreadOf(io);
  const auto known = chain_of_thread_.find(thread);
  if (known != chain_of_thread_.end()) return known->second;
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
    *oldest = Chain();
  }
  chains_[chain].thread = thread;
  chains_[chain].born_ns = io.arrival_ns().value_or(*first_ns_);
  births_[born_++ % births_.size()] = chain;
  chain_of_thread_[thread] = chain;
  return chain;
}

void Dependencies::Hold(uint32_t slot, uint32_t* role) {
  ++slots_[slot].uses;
  if (*role != kNone) Release(*role);
  *role = slot;
}

void Dependencies::Release(uint32_t slot) {
  BLKTAPE_CHECK(slots_[slot].uses > 0);
  if (--slots_[slot].uses == 0) free_slots_.push_back(slot);
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
  write.flush_follows = false;
  Push(slot);
  return true;
}

void Dependencies::Happened(uint32_t slot) {
  const Slot& done = slots_[slot];
  Chain& chain = chains_[done.chain];
  chain.any_completed = true;
  chain.last_complete_ns = std::max(chain.last_complete_ns, done.complete_ns);
  chain.untold.push_back(slot);  // takes over its use as a pending one
  HoldLatest(slot, &chain.last_slot);
  HoldLatest(slot, &last_completed_);
  if (done.journal) HoldLatest(slot, &last_journal_);
  if (!done.commit) return;
  Commit& commit = commits_[next_commit_];
  next_commit_ = (next_commit_ + 1) % commits_.size();
  Hold(slot, &commit.slot);
  commit.from_ns = chain.committing ? chain.commit_from_ns : done.arrival_ns;
  commit.complete_ns = done.complete_ns;
  chain.committing = false;
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

void Dependencies::Arrive(const IoRecord& io, bool no_fua) {
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

void Dependencies::Name(uint32_t slot, Chain* chain, std::vector<uint32_t>* gates) {
  gates->push_back(slot);
  if (slots_[slot].complete_ns <= chain->told_ns) return;
  chain->told_ns = slots_[slot].complete_ns;
  chain->told_host_ns = slots_[slot].host_ns;
}

// The first commit that began after the chain's sync write had completed: only then does a file
// system write down where new data are. Without one, the first that began after it arrived. The
// first is the one that ended first.
const Dependencies::Commit* Dependencies::CommitAfter(const Chain& chain) const {
  const Commit* after_complete = nullptr;
  const Commit* after_arrival = nullptr;
  const auto take = [this](const Commit& commit, const Commit** first) {
    if (*first == nullptr || IsLater((*first)->slot, commit.slot)) *first = &commit;
  };
  for (const Commit& commit : commits_) {
    if (commit.slot == kNone || commit.complete_ns <= chain.last_complete_ns) continue;
    if (commit.from_ns >= chain.last_complete_ns) take(commit, &after_complete);
    if (commit.from_ns >= chain.synced_ns) take(commit, &after_arrival);
  }
  return after_complete != nullptr ? after_complete : after_arrival;
}

// The last that a chain has waited for by now: its own I/O, or the commit after that.
uint32_t Dependencies::EndOf(const Chain& chain) const {
  const Commit* commit = chain.synced ? CommitAfter(chain) : nullptr;
  return commit != nullptr ? commit->slot : chain.last_slot;
}

// Of the threads that had their first I/O since the chain's last one, the end that came last: a
// program waits for the ones it started.
uint32_t Dependencies::EndOfStarted(const Chain& chain) const {
  uint32_t last = kNone;
  for (size_t i = 0; i < std::min(born_, births_.size()); ++i) {
    const Chain& started = chains_[births_[i]];
    if (started.born_ns <= chain.arrival_ns || started.last_slot == kNone || started.journals) {
      continue;
    }
    const uint32_t end = EndOf(started);
    if (slots_[end].complete_ns <= chain.told_ns) continue;
    if (last == kNone || IsLater(end, last)) last = end;
  }
  return last;
}

Dependencies::Wait Dependencies::WaitOf(const IoRecord& io, std::vector<uint32_t>* gates) {
  const int64_t arrival_ns = *io.arrival_ns();
  const uint32_t number = ChainOf(io);
  Chain& chain = chains_[number];
  chain.last_seen = ++arrivals_;
  for (const uint32_t slot : chain.untold) {
    Name(slot, &chain, gates);
    Release(slot);
  }
  chain.untold.clear();

  const bool journal = IsJournal(io);
  const bool caused = !chain.any_completed || !IsForeground(io) || (journal && !chain.committing);
  if (caused) {
    if (last_completed_ != kNone && slots_[last_completed_].complete_ns > chain.told_ns) {
      Name(last_completed_, &chain, gates);
    }
  } else {
    const Commit* commit = chain.synced && !journal ? CommitAfter(chain) : nullptr;
    if (commit != nullptr) Name(commit->slot, &chain, gates);
    const auto unexplained = [&] {
      return SaturatingSubtract(arrival_ns, chain.told_ns) > 2 * kWakeNs;
    };
    // Who writes to the journal for itself (ends a file system) has waited for its thread; to be
    // woken by that takes longer, since it has work to do after a commit.
    const int64_t wake_ns = journal ? 2 * kWakeNs : kWakeNs;
    const bool woken = last_journal_ != kNone &&
                       slots_[last_journal_].complete_ns > chain.told_ns &&
                       SaturatingSubtract(arrival_ns, slots_[last_journal_].complete_ns) <= wake_ns;
    if (woken && unexplained()) Name(last_journal_, &chain, gates);
    const uint32_t started = !journal && unexplained() ? EndOfStarted(chain) : kNone;
    if (started != kNone) Name(started, &chain, gates);
  }
  chain.journals = chain.journals || journal;
  if (journal && !chain.committing) {
    chain.committing = true;
    chain.commit_from_ns = arrival_ns;
  }
  chain.synced = IsSyncWrite(io);
  chain.synced_ns = arrival_ns;
  chain.arrival_ns = arrival_ns;
  const int64_t from_ns = std::max(chain.told_ns, *first_ns_);
  return {.chain = number,
          .think_ns = std::max<int64_t>(0, SaturatingSubtract(arrival_ns, from_ns)),
          .host_ns = chain.told_host_ns};
}

std::optional<uint32_t> Dependencies::Add(const IoRecord& io, int64_t host_ns) {
  if (!io.complete_ns) return std::nullopt;
  uint32_t slot = 0;
  if (!free_slots_.empty()) {
    slot = free_slots_.back();
    free_slots_.pop_back();
  } else if (slots_.size() < max_slots_) {
    slot = static_cast<uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    return std::nullopt;
  }
  slots_[slot] = {.number = added_++,
                  .arrival_ns = *io.arrival_ns(),
                  .complete_ns = *io.complete_ns,
                  .host_ns = host_ns,
                  .device = io.device,
                  .chain = ChainOf(io),
                  .uses = 1,
                  .flush_follows = no_fua_ && io.op == Op::kWrite && (io.flags & kFlagFua) != 0,
                  .journal = IsJournal(io),
                  .commit = IsCommit(io)};
  Push(slot);
  return slot;
}

}  // namespace blktape
