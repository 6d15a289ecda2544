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

// "read", "write", "discard", "flush", "write_zeroes", ...: the names of JSON, CSV and terminal.
const char* OpName(Op op);

// Bits of IoRecord.flags. Stored in traces: values are never changed or reused.
inline constexpr uint32_t kFlagSync = 1u << 0;
inline constexpr uint32_t kFlagFua = 1u << 1;
inline constexpr uint32_t kFlagPreflush = 1u << 2;
inline constexpr uint32_t kFlagMeta = 1u << 3;
inline constexpr uint32_t kFlagReadahead = 1u << 4;
// A flush the block layer made of a PREFLUSH or FUA write: a replay leaves it to the kernel above
// its target.
inline constexpr uint32_t kFlagDerived = 1u << 5;
inline constexpr uint32_t kFlagAtomic = 1u << 6;
// Result of a replay: the operation was mapped to another one by --unsupported=emulate.
inline constexpr uint32_t kFlagEmulated = 1u << 7;
// Result of a replay: a part of the time from due to submission is the drive's backlog. Without
// backlog_ns, as older results are, all of it.
inline constexpr uint32_t kFlagBacklog = 1u << 8;

// "sync+fua", in the order of the bits; "" for none. Bits without a name are one hexadecimal
// number.
std::string FlagNames(uint32_t flags);
// The same in a letter each, for tables: S F P M A(head) D T(omic) E B; "?" for bits without a
// name.
std::string FlagLetters(uint32_t flags);

// One I/O, at request level: what the drive saw. Times are on the trace's monotonic clock, in ns.
// In the result of a replay queue_ns is when the I/O was due and issue_ns when it was submitted.
struct IoRecord {
  uint32_t device = 0;  // index into Header.devices
  Op op = Op::kRead;
  uint32_t flags = 0;
  std::optional<Lba> lba;  // absent for a flush
  uint64_t bytes = 0;
  std::optional<int64_t> queue_ns;  // of its earliest bio
  std::optional<int64_t> issue_ns;
  std::optional<int64_t> complete_ns;
  std::optional<uint32_t> error;        // positive errno, 0 = succeeded; absent = not known
  std::optional<uint32_t> pid;          // who queued it
  std::optional<uint32_t> process;      // id in the trace's process dictionary
  std::optional<uint32_t> cpu;          // where it was issued
  std::optional<uint32_t> merged_bios;  // bios merged into it beyond the first
  std::optional<uint32_t> prio;         // ioprio value
  // Result of a replay: which record of the trace this was, counting from 0.
  std::optional<uint64_t> ordinal;
  // Result of a replay: how much of issue_ns - queue_ns it waited for the drive. The rest is the
  // host's lateness.
  std::optional<uint64_t> backlog_ns;

  // When it reached the block layer as far as is known: the order of records in a trace. Made anew
  // from the number: a copy of an optional whose number was set just before waits for that store.
  std::optional<int64_t> arrival_ns() const {
    const int64_t ns = queue_ns ? *queue_ns : issue_ns.value_or(0);
    return queue_ns || issue_ns ? std::optional(ns) : std::nullopt;
  }

  bool operator==(const IoRecord&) const = default;
};

// What a person waits for: reads, sync or FUA writes, flushes (docs/score.md).
inline bool IsForeground(const IoRecord& io) {
  if (io.op == Op::kRead || io.op == Op::kFlush) return true;
  return io.op == Op::kWrite && (io.flags & (kFlagSync | kFlagFua | kFlagPreflush)) != 0;
}

}  // namespace blktape
