#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/trace_writer.h"

namespace blktape {

// How the clocks of several traces are brought together.
enum class MergeClock {
  kWall,   // by the wall clock that each trace knows beside its own
  kSame,   // all were recorded on one machine between two starts of it: times stay as they are
  kStart,  // the first I/Os coincide
};

struct MergeReport {
  uint64_t records = 0;
  uint64_t lost_events = 0;
  uint64_t late = 0;  // records out of order in their own trace, which stay so
  // What was added to the times of each trace, in ns, to put them on the clock of the first.
  std::vector<int64_t> shifts_ns;
  // "sda" of the second trace is "sda" of the merged one where both are the same disk of the same
  // machine, else "sda.2": one line for each that was renamed.
  std::vector<std::string> renamed;
};

// Merges the traces at `from_paths` (two at least) by arrival into the new trace `to_path`: I/Os,
// losses, marks and sizes as queued. Memory: a frame a trace. Fails with kFailedPrecondition, and
// nothing is written, where `clock` is kWall and a trace does not know the wall clock.
Result<MergeReport> MergeTraces(const std::vector<std::string>& from_paths,
                                const std::string& to_path, MergeClock clock,
                                const TraceWriterOptions& options = {});

}  // namespace blktape
