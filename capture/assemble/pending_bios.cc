#include "capture/assemble/pending_bios.h"

#include <algorithm>

namespace blktape {
namespace {

constexpr uint32_t kNone = PendingBios::Pool::kNone;

// Overlapping bios that are queued at the same time are rare, and so are requests that begin inside
// a bio whose front has not been issued: searching more of them is not worth the time.
constexpr int kLookAtMost = 4096;

// A bio that is queued this much later than another at the same address shows that the other is
// gone: it failed before it became a request.
constexpr int64_t kStaleNs = 1'000'000'000;

}  // namespace

void PendingBios::Insert(uint32_t device, Op op, const PendingBio& bio) {
  pool_.Insert({bio.begin, device, op}, bio);
}

// The best bio that contains `sector`; `end` is the end of the request.
uint32_t PendingBios::FindAt(uint32_t device, Op op, uint64_t sector, uint64_t end) const {
  const auto better = [&](uint32_t a, uint32_t b) {  // is a better than b, which is older?
    if (b == kNone) return true;
    const PendingBio& x = pool_.at(a);
    const PendingBio& y = pool_.at(b);
    if (x.loss_count != y.loss_count) return x.loss_count > y.loss_count;
    if (x.queue_ns - y.queue_ns > kStaleNs) return true;
    if (y.queue_ns - x.queue_ns > kStaleNs) return false;
    return x.end == end && y.end != end;
  };
  uint32_t best = kNone;
  int looked = 0;
  for (uint32_t i = pool_.First({sector, device, op}); i != kNone && looked < kLookAtMost;
       i = pool_.Next(i), ++looked) {
    if (better(i, best)) best = i;
  }
  if (best != kNone) return best;
  looked = 0;
  for (uint32_t i = pool_.Oldest(); i != kNone && looked < kLookAtMost;
       i = pool_.Younger(i), ++looked) {
    const IoKey& key = pool_.key(i);
    if (key.device != device || key.op != op) continue;
    const PendingBio& bio = pool_.at(i);
    if (bio.begin < sector && sector < bio.end && better(i, best)) best = i;
  }
  return best;
}

// The bio that begins first in (sector, end).
uint32_t PendingBios::FindAfter(uint32_t device, Op op, uint64_t sector, uint64_t end) const {
  uint32_t best = kNone;
  int looked = 0;
  for (uint32_t i = pool_.Oldest(); i != kNone && looked < kLookAtMost;
       i = pool_.Younger(i), ++looked) {
    const IoKey& key = pool_.key(i);
    if (key.device != device || key.op != op || key.sector <= sector || key.sector >= end) continue;
    if (best == kNone || key.sector < pool_.key(best).sector) best = i;
  }
  return best;
}

uint64_t PendingBios::Take(uint32_t device, Op op, uint64_t begin, uint64_t end,
                           std::vector<PendingBio>* taken) {
  uint64_t covered = 0;
  uint64_t at = begin;
  while (at < end && pool_.size() > 0) {
    uint32_t index = FindAt(device, op, at, end);
    if (index == kNone) {
      // If not even the first sector is known, the request's bios were queued unseen.
      if (taken->empty()) return covered;
      index = FindAfter(device, op, at, end);
      if (index == kNone) return covered;
      at = pool_.key(index).sector;
    }
    PendingBio bio = pool_.at(index);
    const uint64_t stop = std::min(end, bio.end);
    PendingBio part = bio;
    part.begin = at;
    part.end = stop;
    const bool front_left = bio.begin < at;
    const bool rest_left = bio.end > stop;
    if (!front_left && !rest_left) {
      pool_.Erase(index);
      for (uint32_t i = pool_.First({bio.begin, device, op}); i != kNone; i = pool_.Next(i)) {
        PendingBio& other = pool_.at(i);
        other.asked_again |= other.end == bio.end;
      }
    } else {
      arrivals_->Share(bio.ticket);
      if (front_left) {
        pool_.at(index).end = at;
        if (rest_left) {
          arrivals_->Share(bio.ticket);
          bio.begin = stop;
          Insert(device, op, bio);
        }
      } else {
        pool_.at(index).begin = stop;
        pool_.Rekey(index, {stop, device, op});
      }
    }
    taken->push_back(part);
    covered += stop - at;
    at = stop;
  }
  return covered;
}

bool PendingBios::TakeRun(uint32_t device, Op op, uint64_t begin, uint64_t sectors, bool one_pid,
                          std::vector<PendingBio>* taken) {
  std::vector<uint32_t> chosen;
  for (uint32_t first = pool_.First({begin, device, op}); first != kNone;
       first = pool_.Next(first)) {
    chosen.clear();
    uint64_t sum = 0;
    int looked = 0;
    for (uint32_t i = first; i != kNone && sum < sectors && looked < kLookAtMost;
         i = pool_.Younger(i), ++looked) {
      const IoKey& key = pool_.key(i);
      if (key.device != device || key.op != op) continue;
      if (one_pid && pool_.at(i).pid != pool_.at(first).pid) continue;
      sum += pool_.at(i).end - pool_.at(i).begin;
      chosen.push_back(i);
    }
    if (sum != sectors) continue;
    for (const uint32_t index : chosen) {
      taken->push_back(pool_.at(index));
      pool_.Erase(index);
    }
    return true;
  }
  return false;
}

uint64_t PendingBios::EndOfFirst(uint32_t device, Op op, uint64_t begin, uint64_t end) const {
  const uint32_t index = pool_.size() == 0 ? kNone : FindAt(device, op, begin, end);
  return index == kNone ? begin : std::min(end, pool_.at(index).end);
}

bool PendingBios::Covers(uint32_t device, Op op, uint64_t begin, uint64_t end) const {
  uint64_t at = begin;
  while (at < end) {
    const uint64_t next = EndOfFirst(device, op, at, end);
    if (next == at) return false;
    at = next;
  }
  return true;
}

bool PendingBios::TakeExact(uint32_t device, Op op, uint64_t begin, uint64_t end,
                            PendingBio* taken) {
  for (uint32_t i = pool_.First({begin, device, op}); i != kNone; i = pool_.Next(i)) {
    if (pool_.at(i).end != end) continue;
    *taken = pool_.at(i);
    pool_.Erase(i);
    return true;
  }
  return false;
}

void PendingBios::Split(uint32_t device, Op op, uint64_t begin, uint64_t at) {
  for (uint32_t i = pool_.First({begin, device, op}); i != kNone; i = pool_.Next(i)) {
    PendingBio bio = pool_.at(i);
    if (at <= bio.begin || at >= bio.end) continue;
    pool_.at(i).end = at;
    bio.begin = at;
    arrivals_->Share(bio.ticket);
    Insert(device, op, bio);
    return;
  }
}

}  // namespace blktape
