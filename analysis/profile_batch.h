#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "format/record_columns.h"

namespace blktape {

// A data request, or any other I/O, at the moment of its issue.
struct ProfiledIo {
  int64_t start_ns = 0;
  int64_t end_ns = 0;         // start_ns or later
  uint64_t offset_bytes = 0;  // of `data`
  uint64_t bytes = 0;
  uint32_t device = 0;
  bool completed = false;
  bool data = false;  // a read or write of at least a byte, with an address
  bool write = false;
};

// Records on their way through the figures of a profile: each works on one batch after the other.
struct ProfileBatch {
  // What a record is, for all figures alike: bits of `kinds`.
  enum Kind : uint8_t {
    kData = 1 << 0,        // a read or write of at least a byte
    kWaited = 1 << 1,      // somebody waits for it, as analysis/foreground.h has it
    kForeground = 1 << 2,  // likewise, or a flush derived from such a write
  };

  std::shared_ptr<RecordColumns> columns;
  std::vector<uint8_t> kinds;
  // Sizes that are too odd to be counted out of order: op and bytes.
  std::vector<std::pair<uint8_t, uint64_t>> odd_sizes;
  // What left in order of issue while this batch came: where data requests went, and all I/Os.
  struct Address {
    uint64_t offset_bytes = 0;
    uint64_t bytes = 0;
    uint32_t device = 0;
    bool write = false;
  };
  std::vector<Address> addresses;
  std::vector<ProfiledIo> issued;
  // Stretches in which the drive was busy, that ended meanwhile.
  std::vector<std::pair<int64_t, int64_t>> busy;

  bool HasArrival(size_t i) const {
    return columns->Has(i, RecordColumns::kQueue | RecordColumns::kIssue);
  }
  int64_t ArrivalNs(size_t i) const {
    return columns->Has(i, RecordColumns::kQueue) ? columns->queue_ns[i] : columns->issue_ns[i];
  }
};

}  // namespace blktape
