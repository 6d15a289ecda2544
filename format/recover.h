#pragma once

#include <string>

#include "base/status.h"
#include "format/trace_copier.h"
#include "format/trace_writer.h"

namespace blktape {

// The outcome. `whole` is possible, because a recorder can die after it finished the file and
// before it renamed it.
using RecoverReport = RewriteReport;

// Makes a finished trace at `to_path` from the unfinished or damaged one at `from_path`. It
// contains all records of frames with a correct checksum; the rest is stored as losses. `from_path`
// is never changed. kFailedPrecondition if the input is still being written, kAlreadyExists if
// `to_path` exists, kDataLoss if not even the header can be read. The new trace is durable when
// this returns.
Result<RecoverReport> RecoverTrace(const std::string& from_path, const std::string& to_path,
                                   const TraceWriterOptions& options = {});

}  // namespace blktape
