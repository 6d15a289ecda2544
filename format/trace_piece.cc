#include "format/trace_piece.h"

#include <fmt/format.h>

#include "base/quantity.h"
#include "base/saturating.h"

namespace blktape {

std::optional<int64_t> FirstArrival(const std::optional<proto::Summary>& summary) {
  if (!summary || !summary->has_first_ns()) return std::nullopt;
  return summary->first_ns();
}

Status CheckPieceBegins(int64_t from_ns, const std::optional<proto::Summary>& summary,
                        const ArrivalSpan& met) {
  ArrivalSpan span = met;
  if (summary) {
    span = {};
    if (summary->has_first_ns()) span.first_ns = summary->first_ns();
    if (summary->has_last_ns()) span.last_ns = summary->last_ns();
  }
  if (!span.first_ns || !span.last_ns) return OkStatus();
  const int64_t length_ns = SaturatingSubtract(*span.last_ns, *span.first_ns);
  if (from_ns <= length_ns) return OkStatus();
  return Status(StatusCode::kInvalidArgument,
                fmt::format("--from {} is beyond the end of the trace: its last I/O arrived {} "
                            "({} ns) after the first",
                            FormatDurationNs(from_ns), FormatDurationNs(length_ns), length_ns));
}

}  // namespace blktape
