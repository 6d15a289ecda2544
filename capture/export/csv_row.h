#pragma once

#include <fmt/format.h>

#include <string_view>

#include "format/io_record.h"

namespace blktape {

// The columns of `dump --csv`, without a line end: times in ns on the trace's monotonic clock, lba
// in 512-byte sectors, flags joined by "+"; unknown values are empty.
inline constexpr std::string_view kCsvColumns =
    "queue_ns,issue_ns,complete_ns,device,op,flags,lba,bytes,error,pid,process,cpu";

// Appends a row with these columns, without a line end. Names are quoted if RFC 4180 requires it.
void AppendCsvRow(const IoRecord& io, std::string_view device, std::string_view process,
                  fmt::memory_buffer* text);

}  // namespace blktape
