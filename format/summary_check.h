#pragma once

#include <cstdint>
#include <optional>

#include "format/trace.pb.h"

namespace blktape {

// Whether a summary can be that of the trace with this header: what it says of devices, operations
// and places in the file is then within bounds, and users need not check it again. It can still be
// untrue of the records. `file_bytes` is the size of the file, where it is known.
//
// Null if it can; else the reason, for people.
const char* SummaryContradiction(const proto::Header& header, const proto::Summary& summary,
                                 std::optional<uint64_t> file_bytes);

}  // namespace blktape
