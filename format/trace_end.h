#pragma once

#include <cstdint>
#include <optional>

#include "base/byte_stream.h"
#include "base/status.h"
#include "format/trace.pb.h"

namespace blktape {

// The summary at the end of a finished trace, as it stands there: not yet checked against the rest.
struct TraceEnd {
  proto::Summary summary;
  uint64_t trace = 0;        // its frame's
  uint64_t begin_bytes = 0;  // where that begins
  uint64_t end_bytes = 0;    // and ends
};

// Reads it from a source that can seek. Absent: there is no seek table, or the last frame is
// damaged or has no summary. Leaves the source anywhere. Fails as the source does.
Result<std::optional<TraceEnd>> ReadTraceEnd(ByteSource* source);

}  // namespace blktape
