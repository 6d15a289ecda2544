#include "format/record_columns.h"

#include <algorithm>
#include <optional>

namespace blktape {
namespace {

// Calls `visit(column, field)` for each column that not every record has.
template <typename Columns, typename Visit>
void ForEachOptional(Columns* c, Visit visit) {
  visit(&c->lba_sectors, RecordColumns::kLba);
  visit(&c->queue_ns, RecordColumns::kQueue);
  visit(&c->issue_ns, RecordColumns::kIssue);
  visit(&c->complete_ns, RecordColumns::kComplete);
  visit(&c->error, RecordColumns::kError);
  visit(&c->pid, RecordColumns::kPid);
  visit(&c->process, RecordColumns::kProcess);
  visit(&c->cpu, RecordColumns::kCpu);
  visit(&c->merged_bios, RecordColumns::kMergedBios);
  visit(&c->prio, RecordColumns::kPrio);
  visit(&c->ordinal, RecordColumns::kOrdinal);
  visit(&c->backlog_ns, RecordColumns::kBacklog);
  visit(&c->waker, RecordColumns::kWaker);
  visit(&c->since_wake_ns, RecordColumns::kSinceWake);
}

template <typename Columns, typename Visit>
void ForEachOfAll(Columns* c, Visit visit) {
  visit(&c->present);
  visit(&c->device);
  visit(&c->op);
  visit(&c->flags);
  visit(&c->bytes);
}

}  // namespace

void RecordColumns::Reserve(size_t records, uint16_t fields) {
  const auto grow = [records](auto* column) {
    if (column->size() < records) column->resize(records);
  };
  ForEachOfAll(this, grow);
  ForEachOptional(this, [&](auto* column, Field field) {
    if ((fields & field) != 0) grow(column);
  });
  if (fields == kAllFields) appendable = std::max(appendable, records);
}

void RecordColumns::Append(const IoRecord& io) {
  if (count >= appendable) Reserve(std::max<size_t>(64, 2 * count), kAllFields);
  const size_t at = count++;
  device[at] = io.device;
  op[at] = static_cast<uint8_t>(io.op);
  flags[at] = io.flags;
  bytes[at] = io.bytes;
  uint16_t has = 0;
  const auto put = [&](const auto& value, auto* column, Field field) {
    if (!value) return;
    has |= field;
    (*column)[at] = *value;
  };
  if (io.lba) {
    has |= kLba;
    lba_sectors[at] = io.lba->sectors;
  }
  put(io.queue_ns, &queue_ns, kQueue);
  put(io.issue_ns, &issue_ns, kIssue);
  put(io.complete_ns, &complete_ns, kComplete);
  put(io.error, &error, kError);
  put(io.pid, &pid, kPid);
  put(io.process, &process, kProcess);
  put(io.cpu, &cpu, kCpu);
  put(io.merged_bios, &merged_bios, kMergedBios);
  put(io.prio, &prio, kPrio);
  put(io.ordinal, &ordinal, kOrdinal);
  put(io.backlog_ns, &backlog_ns, kBacklog);
  put(io.waker, &waker, kWaker);
  put(io.since_wake_ns, &since_wake_ns, kSinceWake);
  present[at] = has;
}

IoRecord RecordColumns::Record(size_t index) const {
  IoRecord io;
  io.device = device[index];
  io.op = static_cast<Op>(op[index]);
  io.flags = flags[index];
  io.bytes = bytes[index];
  const auto take = [&](const auto& column, Field field, auto* value) {
    if (Has(index, field)) *value = column[index];
  };
  if (Has(index, kLba)) io.lba = Lba(lba_sectors[index]);
  take(queue_ns, kQueue, &io.queue_ns);
  take(issue_ns, kIssue, &io.issue_ns);
  take(complete_ns, kComplete, &io.complete_ns);
  take(error, kError, &io.error);
  take(pid, kPid, &io.pid);
  take(process, kProcess, &io.process);
  take(cpu, kCpu, &io.cpu);
  take(merged_bios, kMergedBios, &io.merged_bios);
  take(prio, kPrio, &io.prio);
  take(ordinal, kOrdinal, &io.ordinal);
  take(backlog_ns, kBacklog, &io.backlog_ns);
  take(waker, kWaker, &io.waker);
  take(since_wake_ns, kSinceWake, &io.since_wake_ns);
  return io;
}

void RecordColumns::Keep(std::span<const uint32_t> rows) {
  if (rows.size() == count) return;
  uint16_t any = 0;
  for (const uint32_t row : rows) any |= present[row];
  const auto keep = [rows](auto* column) {
    for (size_t i = 0; i < rows.size(); ++i) (*column)[i] = (*column)[rows[i]];
  };
  ForEachOfAll(this, keep);
  ForEachOptional(this, [&](auto* column, Field field) {
    if ((any & field) != 0) keep(column);
  });
  count = rows.size();
}

}  // namespace blktape
