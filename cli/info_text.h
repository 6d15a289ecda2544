#pragma once

#include <cstddef>
#include <string>

#include "cli/trace_info.h"

namespace blktape {

// What `blktape info` prints of a trace, in lines of `columns` columns where words allow. Text from
// the trace has no control characters in it.
std::string InfoText(const TraceInfo& info, size_t columns);

}  // namespace blktape
