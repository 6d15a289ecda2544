#pragma once

#include <cstdint>
#include <optional>

#include "format/io_record.h"

namespace blktape {

// Times of a trace that are taken as times (docs/metrics.md): within +-2^60 ns, 36 years. Their
// differences cannot overflow, nor can sums of a few of them. What lies beyond counts as absent.
inline constexpr int64_t kPlausibleNs = int64_t{1} << 60;

inline bool IsPlausibleNs(int64_t time_ns) {
  return time_ns >= -kPlausibleNs && time_ns <= kPlausibleNs;
}

// `record` without the times that are not plausible.
inline IoRecord WithPlausibleTimes(const IoRecord& record) {
  IoRecord io = record;
  for (std::optional<int64_t>* time_ns : {&io.queue_ns, &io.issue_ns, &io.complete_ns}) {
    if (*time_ns && !IsPlausibleNs(**time_ns)) time_ns->reset();
  }
  return io;
}

}  // namespace blktape
