#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/status.h"
#include "format/trace.pb.h"

namespace blktape {

// First and last arrival of a trace. Absent: no record has a time.
struct ArrivalSpan {
  std::optional<int64_t> first_ns = {};
  std::optional<int64_t> last_ns = {};

  void Add(std::optional<int64_t> arrival_ns) {
    if (!arrival_ns) return;
    first_ns = std::min(first_ns.value_or(*arrival_ns), *arrival_ns);
    last_ns = std::max(last_ns.value_or(*arrival_ns), *arrival_ns);
  }
};

// The moment from which every verb counts --from and --to, as far as it is known before the records
// are read: the earliest arrival of the whole trace, which its summary tells. Without one (a
// .partial, a pipe) the arrival of the first record that has one stands for it.
std::optional<int64_t> FirstArrival(const std::optional<proto::Summary>& summary);

// kInvalidArgument, with the trace's length, where a piece that begins so long after the first
// arrival begins after the last one. The summary tells when that was, of damaged records too;
// without one `met` does, which is then to span the whole trace.
Status CheckPieceBegins(int64_t from_ns, const std::optional<proto::Summary>& summary,
                        const ArrivalSpan& met);

}  // namespace blktape
