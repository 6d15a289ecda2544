#pragma once

#include <string>

#include "base/status.h"
#include "format/trace_copier.h"
#include "format/trace_writer.h"

namespace blktape {

// What was made of the input (`whole`: a recorder can die between finishing it and the new name).
using RecoverReport = RewriteReport;

// Makes a finished trace at `to_path` of the unfinished or damaged one at `from_path`: all records
// of frames whose checksum holds; the rest stored as losses. `from_path` is never changed.
// kFailedPrecondition if it is still being written, kAlreadyExists if `to_path` exists, kDataLoss
// if not even its header can be read. The new trace is durable when it returns.
Result<RecoverReport> RecoverTrace(const std::string& from_path, const std::string& to_path,
                                   const TraceWriterOptions& options = {});

}  // namespace blktape
