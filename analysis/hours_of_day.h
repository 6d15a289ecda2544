#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/saturating.h"
#include "base/units.h"
#include "format/io_record.h"

namespace blktape {

// What arrived in each hour of the day, all days together. A plain value; one thread at a time.
struct HoursOfDay {
  struct Hour {
    uint64_t reads = 0;
    uint64_t writes = 0;
    uint64_t others = 0;
    uint64_t read_bytes = 0;
    uint64_t write_bytes = 0;
  };
  std::array<Hour, 24> hours{};  // [13] from 13:00 to below 14:00
  uint64_t unplaced = 0;         // I/Os of which nobody knows when they arrived by the wall clock

  // `local_ns`: of the arrival, since 1970 began where the disk was.
  void Add(std::optional<int64_t> local_ns, Op op, uint64_t bytes) {
    if (!local_ns) {
      ++unplaced;
      return;
    }
    constexpr int64_t kHour = 3'600 * kNanosPerSecond;
    constexpr int64_t kDay = 24 * kHour;
    Hour& hour = hours[static_cast<size_t>((*local_ns % kDay + kDay) % kDay / kHour)];
    if (op == Op::kRead) {
      ++hour.reads;
      hour.read_bytes = SaturatingAdd(hour.read_bytes, bytes);
    } else if (op == Op::kWrite) {
      ++hour.writes;
      hour.write_bytes = SaturatingAdd(hour.write_bytes, bytes);
    } else {
      ++hour.others;
    }
  }
};

}  // namespace blktape
