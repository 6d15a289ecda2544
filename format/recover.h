#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "format/trace_writer.h"

namespace blktape {

struct RecoverReport {
  uint64_t records = 0;
  // Events known to be missing in the recovered trace, a loss of unknown extent counted as one.
  uint64_t lost_events = 0;
  // The input was finished, and nothing that it once held is missing (a recorder can die between
  // that and the new name).
  bool was_whole = false;
  // It was damaged at the cost of no event.
  bool was_harmlessly_damaged = false;
};

// Makes a finished trace at `to_path` of the unfinished or damaged one at `from_path`: all records
// of frames whose checksum holds; the rest stored as losses. `from_path` is never changed.
// kFailedPrecondition if it is still being written, kAlreadyExists if `to_path` exists, kDataLoss
// if not even its header can be read. The new trace is durable when it returns.
Result<RecoverReport> RecoverTrace(const std::string& from_path, const std::string& to_path,
                                   const TraceWriterOptions& options = {});

}  // namespace blktape
