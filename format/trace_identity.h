#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "format/trace.pb.h"

namespace blktape {

// What tells the frames of one trace from those of any other, and which frames hold its header.

// An id for the trace that begins with `header`, whose own trace_id may be that of the trace it is
// copied from. The same header gives the same id, so that a conversion done twice gives the same
// file; recordings differ by the moment when they began.
std::string NewTraceId(const proto::Header& header);

// FrameStart.trace of the frames of the trace with this header; 0: it has no id.
uint64_t FrameTrace(const proto::Header& header);

// Whether the frame of this number has a copy of the header behind its start: 2, 4, 8, 16 ...
bool HasHeaderCopy(uint64_t frame_number);

// kUnimplemented, naming `where` and what it is, for a trace that this program does not understand:
// of a newer format version, or one that needs a feature it does not know.
Status CheckUnderstood(const proto::Header& header, std::string_view where);

}  // namespace blktape
