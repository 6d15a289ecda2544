#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.h"

namespace blktape {

// Stored in traces: values are never changed or reused.
enum class Op : uint8_t {
  kRead = 0,
  kWrite = 1,
  kDiscard = 2,
  kFlush = 3,  // no data, no address
  kWriteZeroes = 4,
  kSecureErase = 5,
  kZoneReset = 6,
  kZoneResetAll = 7,
  kZoneOpen = 8,
  kZoneClose = 9,
  kZoneFinish = 10,
  kZoneAppend = 11,
};
inline constexpr int kOpCount = 12;

// "read", "write", "discard", "flush", "write_zeroes", ...: the names in JSON, in CSV and on the
// terminal.
const char* OpName(Op op);

// Bits of IoRecord.flags. Stored in traces: values are never changed or reused.
inline constexpr uint32_t kFlagSync = 1u << 0;
inline constexpr uint32_t kFlagFua = 1u << 1;
inline constexpr uint32_t kFlagPreflush = 1u << 2;
inline constexpr uint32_t kFlagMeta = 1u << 3;
inline constexpr uint32_t kFlagReadahead = 1u << 4;
// A flush that the block layer derived from a PREFLUSH or FUA write. A replay does not issue it:
// the kernel derives it again on the target.
inline constexpr uint32_t kFlagDerived = 1u << 5;
inline constexpr uint32_t kFlagAtomic = 1u << 6;
// In a replay's result: the operation was replaced by another one because of --unsupported=emulate.
inline constexpr uint32_t kFlagEmulated = 1u << 7;
// In a replay's result: part of the time from due to submission is the drive's backlog; all of it
// if backlog_ns is absent, as in older results.
inline constexpr uint32_t kFlagBacklog = 1u << 8;
// A write with PREFLUSH that device-mapper has passed on in two steps: an empty bio with its flags,
// and when that was complete the data without PREFLUSH. So with FUA, too, a disk without FUA has
// flushed twice before the data.
inline constexpr uint32_t kFlagMapped = 1u << 9;

// How often a drive flushes before it writes the data of a write with these flags. `has_fua`: it
// can write with FUA itself.
constexpr int FlushesFirst(uint32_t flags, bool has_fua) {
  if ((flags & kFlagPreflush) == 0) return 0;
  return !has_fua && (flags & kFlagMapped) != 0 && (flags & kFlagFua) != 0 ? 2 : 1;
}

// "sync+fua", in the order of the bits; "" for none. Bits without a name are shown together as one
// hexadecimal number.
std::string FlagNames(uint32_t flags);
// The same with one letter per flag, for tables: S F P M A(head) D T(omic) E B L(ayer); "?" for
// bits without a name.
std::string FlagLetters(uint32_t flags);

// One I/O at request level, as the drive saw it. Times are in ns on the trace's monotonic clock. In
// a replay's result, queue_ns is when the I/O was due and issue_ns when it was submitted.
struct IoRecord {
  uint32_t device = 0;  // index into Header.devices
  Op op = Op::kRead;
  uint32_t flags = 0;
  std::optional<Lba> lba;  // absent for a flush
  uint64_t bytes = 0;
  std::optional<int64_t> queue_ns;  // queue time of its earliest bio
  std::optional<int64_t> issue_ns;
  std::optional<int64_t> complete_ns;
  std::optional<uint32_t> error;        // positive errno, 0 = succeeded; absent = not known
  std::optional<uint32_t> pid;          // the process that queued it
  std::optional<uint32_t> process;      // id in the trace's process dictionary
  std::optional<uint32_t> cpu;          // where it was issued
  std::optional<uint32_t> merged_bios;  // bios merged into it beyond the first
  std::optional<uint32_t> prio;         // ioprio value
  // Of a thread that was woken since its I/O before: by this thread, which does I/O, or as one of
  // that one's completed; directly, or by way of threads that did none in between. And how long
  // before this I/O's arrival that was. Both or neither; absent, too, where it is not known.
  std::optional<uint32_t> waker;
  std::optional<uint64_t> since_wake_ns;
  // In a replay's result: the index of the replayed record in the trace, from 0.
  std::optional<uint64_t> ordinal;
  // In a replay's result: the part of issue_ns - queue_ns in which the I/O waited for the drive.
  // The rest is the host's lateness.
  std::optional<uint64_t> backlog_ns;

  // When the I/O reached the block layer, as far as is known. Traces are in this order. Returns a
  // new optional made from the number: copying an optional right after its number was set would
  // wait for that store.
  std::optional<int64_t> arrival_ns() const {
    const int64_t ns = queue_ns ? *queue_ns : issue_ns.value_or(0);
    return queue_ns || issue_ns ? std::optional(ns) : std::nullopt;
  }

  bool operator==(const IoRecord&) const = default;
};

// Whether a person waits for this I/O: reads, sync or FUA writes, flushes (docs/score.md).
inline bool IsForeground(const IoRecord& io) {
  if (io.op == Op::kRead || io.op == Op::kFlush) return true;
  return io.op == Op::kWrite && (io.flags & (kFlagSync | kFlagFua | kFlagPreflush)) != 0;
}

}  // namespace blktape
