#pragma once

#include <cstdint>
#include <optional>

#include "format/trace.pb.h"

namespace blktape {

// Checks whether a summary can belong to the trace with this header. If so, its devices, operations
// and file offsets are within bounds, and callers need not check them again. It may still not match
// the records. `file_bytes` is the size of the file, if known.
//
// Returns null if it can; else the reason, as text for messages.
const char* SummaryContradiction(const proto::Header& header, const proto::Summary& summary,
                                 std::optional<uint64_t> file_bytes);

}  // namespace blktape
