#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/io_record.h"

namespace blktape {

// Records as columns: value i of each column belongs to record i. Units as in IoRecord. A column
// has at least `count` values. Values after those, and the value of a record without the field's
// bit in `present`, have no meaning. Used by one thread at a time.
struct RecordColumns {
  // Bits of `present`, and of the set of requested columns.
  enum Field : uint16_t {
    kLba = 1 << 0,
    kQueue = 1 << 1,
    kIssue = 1 << 2,
    kComplete = 1 << 3,
    kError = 1 << 4,
    kPid = 1 << 5,
    kProcess = 1 << 6,
    kCpu = 1 << 7,
    kMergedBios = 1 << 8,
    kPrio = 1 << 9,
    kOrdinal = 1 << 10,
    kBacklog = 1 << 11,
    kWaker = 1 << 12,
    kSinceWake = 1 << 13,
  };
  static constexpr uint16_t kAllFields = (1 << 14) - 1;

  size_t count = 0;
  std::vector<uint16_t> present;
  std::vector<uint32_t> device;
  std::vector<uint8_t> op;  // each below kOpCount
  std::vector<uint32_t> flags;
  std::vector<uint64_t> bytes;
  std::vector<uint64_t> lba_sectors;
  std::vector<int64_t> queue_ns, issue_ns, complete_ns;
  std::vector<uint32_t> error, pid, process, cpu, merged_bios, prio, waker;
  std::vector<uint64_t> ordinal, backlog_ns, since_wake_ns;
  size_t appendable = 0;  // all columns have space for this many records
  int home = 0;           // TaskPool::Here() of the thread that probably has them in its cache

  // Makes space for this many records with these fields (and those that every record has), and
  // keeps the existing ones.
  void Reserve(size_t records, uint16_t fields);
  // Appends a record with all its fields.
  void Append(const IoRecord& io);
  IoRecord Record(size_t index) const;
  // Keeps only these records, in their order. The indices must be ascending.
  void Keep(std::span<const uint32_t> rows);

  bool Has(size_t index, uint16_t field) const { return (present[index] & field) != 0; }
};

}  // namespace blktape
