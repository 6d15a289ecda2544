#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "format/trace.pb.h"

namespace blktape {

// Identifies the frames of a trace, and says which frames contain a copy of its header.

// Makes an id for the trace that begins with `header`; header.trace_id may be the id of the trace
// that this one is copied from. The same header gives the same id, so that repeating a conversion
// gives the same file. Recordings differ by their start time.
std::string NewTraceId(const proto::Header& header);

// FrameStart.trace of the frames of the trace with this header; 0 if the trace has no id.
uint64_t FrameTrace(const proto::Header& header);

// Whether the frame with this number has a copy of the header after its start: 2, 4, 8, 16 ...
bool HasHeaderCopy(uint64_t frame_number);

// kUnimplemented if this program cannot read the trace: it has a newer format version, or needs a
// feature that the program does not know. The message names `where` and the reason.
Status CheckUnderstood(const proto::Header& header, std::string_view where);

}  // namespace blktape
