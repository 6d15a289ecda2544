#include "capture/assemble/arrival_sorter.h"

#include <algorithm>

#include "base/check.h"
#include "base/units.h"

namespace blktape {

namespace {

// Bits of Waiting::present.
enum Present : uint16_t {
  kLba = 1 << 0,
  kQueue = 1 << 1,
  kIssue = 1 << 2,
  kComplete = 1 << 3,
  kError = 1 << 4,
  kPid = 1 << 5,
  kCpu = 1 << 6,
  kMergedBios = 1 << 7,
  kPrio = 1 << 8,
  kWaker = 1 << 9,
  kSinceWake = 1 << 10,
};

}  // namespace

void ArrivalSorter::Pack(const IoRecord& record, uint32_t device, const ProcessComm& comm,
                         Waiting* waiting) {
  BLKTAPE_CHECK(!record.process && !record.ordinal);
  uint16_t present = 0;
  const auto put = [&present](const auto& field, uint16_t bit, auto* to) {
    if (!field) return;
    present |= bit;
    *to = *field;
  };
  put(record.queue_ns, kQueue, &waiting->queue_ns);
  put(record.issue_ns, kIssue, &waiting->issue_ns);
  put(record.complete_ns, kComplete, &waiting->complete_ns);
  put(record.error, kError, &waiting->error);
  put(record.pid, kPid, &waiting->pid);
  put(record.cpu, kCpu, &waiting->cpu);
  put(record.merged_bios, kMergedBios, &waiting->merged_bios);
  put(record.prio, kPrio, &waiting->prio);
  put(record.waker, kWaker, &waiting->waker);
  put(record.since_wake_ns, kSinceWake, &waiting->since_wake_ns);
  if (record.lba) {
    present |= kLba;
    waiting->lba_sectors = record.lba->sectors;
  }
  waiting->bytes = record.bytes;
  waiting->comm = comm;
  waiting->device = device;
  waiting->flags = record.flags;
  waiting->present = present;
  waiting->op = record.op;
  waiting->left = false;
}

void ArrivalSorter::Unpack(const Waiting& waiting, FinishedIo* io) {
  IoRecord& record = io->record;
  const auto get = [&waiting](const auto& from, uint16_t bit, auto* field) {
    if ((waiting.present & bit) != 0) *field = from;
  };
  get(waiting.queue_ns, kQueue, &record.queue_ns);
  get(waiting.issue_ns, kIssue, &record.issue_ns);
  get(waiting.complete_ns, kComplete, &record.complete_ns);
  get(waiting.error, kError, &record.error);
  get(waiting.pid, kPid, &record.pid);
  get(waiting.cpu, kCpu, &record.cpu);
  get(waiting.merged_bios, kMergedBios, &record.merged_bios);
  get(waiting.prio, kPrio, &record.prio);
  get(waiting.waker, kWaker, &record.waker);
  get(waiting.since_wake_ns, kSinceWake, &record.since_wake_ns);
  if ((waiting.present & kLba) != 0) record.lba = Lba(waiting.lba_sectors);
  record.bytes = waiting.bytes;
  record.device = waiting.device;
  record.flags = waiting.flags;
  record.op = waiting.op;
  io->comm = waiting.comm;
}

void ArrivalSorter::Add(const IoRecord& record, uint32_t device, const ProcessComm& comm) {
  const int64_t arrival_ns = record.arrival_ns().value_or(0);
  if (left_ns_ && arrival_ns < *left_ns_) {
    ++late_;
    FinishedIo io{record, comm};
    io.record.device = device;
    leave_(io);
    return;
  }
  order_.push_back(
      {arrival_ns, record.issue_ns.value_or(arrival_ns), first_number_ + waiting_.size()});
  Pack(record, device, comm, &waiting_.grow_back());
  while (order_.size() - gone_ > hold_records_) {
    Sort();
    LeaveOldest();
  }
}

void ArrivalSorter::Release(int64_t ns) {
  Sort();
  while (gone_ < order_.size() && order_[gone_].arrival_ns < ns) LeaveOldest();
}

void ArrivalSorter::Sort() {
  // What is moved is less than what has left.
  if (gone_ > order_.size() / 2) {
    order_.erase(order_.begin(), order_.begin() + static_cast<ptrdiff_t>(gone_));
    sorted_ -= gone_;
    gone_ = 0;
  }
  if (sorted_ == order_.size()) return;
  const auto begin = order_.begin() + static_cast<ptrdiff_t>(gone_);
  const auto added = order_.begin() + static_cast<ptrdiff_t>(sorted_);
  std::sort(added, order_.end());
  std::inplace_merge(std::lower_bound(begin, added, *added), added, order_.end());
  sorted_ = order_.size();
}

void ArrivalSorter::LeaveOldest() {
  const Place oldest = order_[gone_++];
  left_ns_ = oldest.arrival_ns;
  Waiting& waiting = waiting_[oldest.number - first_number_];
  waiting.left = true;
  FinishedIo io;
  Unpack(waiting, &io);
  leave_(io);
  for (; !waiting_.empty() && waiting_.front().left; ++first_number_) waiting_.pop_front();
}

}  // namespace blktape
