#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/status.h"
#include "format/trace.pb.h"

namespace blktape {

// The first and last arrival of a trace. Absent: no record has a time.
struct ArrivalSpan {
  std::optional<int64_t> first_ns = {};
  std::optional<int64_t> last_ns = {};

  void Add(std::optional<int64_t> arrival_ns) {
    if (!arrival_ns) return;
    first_ns = std::min(first_ns.value_or(*arrival_ns), *arrival_ns);
    last_ns = std::max(last_ns.value_or(*arrival_ns), *arrival_ns);
  }
};

// The time from which every verb counts --from and --to, if it is known before the records are
// read: the earliest arrival of the whole trace, from its summary. Without a summary (a .partial, a
// pipe), callers use the arrival of the first record that has one.
std::optional<int64_t> FirstArrival(const std::optional<proto::Summary>& summary);

// kInvalidArgument, with the trace's length, if a piece that begins `from_ns` after the first
// arrival begins after the last one. The last arrival comes from the summary, which includes
// damaged records; without a summary it comes from `met`, which must then cover the whole trace.
Status CheckPieceBegins(int64_t from_ns, const std::optional<proto::Summary>& summary,
                        const ArrivalSpan& met);

}  // namespace blktape
