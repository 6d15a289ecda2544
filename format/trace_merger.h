#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/trace_writer.h"

namespace blktape {

// How to align the clocks of several traces.
enum class MergeClock {
  kWall,   // by the wall clock that each trace stores beside its own
  kSame,   // all were recorded on one machine during one boot: times stay unchanged
  kStart,  // the first I/Os coincide
};

struct MergeReport {
  uint64_t records = 0;
  uint64_t lost_events = 0;
  // Messages of kinds that only a newer version knows. They are left out, because they may hold
  // times, devices and ids of their own trace.
  uint64_t unknown_messages = 0;
  uint64_t late = 0;  // records that were out of order in their own trace, and stay so
  // Per trace: the ns added to its times to put them on the clock of the first trace.
  std::vector<int64_t> shifts_ns;
  // Pids that were moved so that threads of two machines are two: those of a trace from `first` on,
  // in a range of 2^22 (a merged trace has several). Beyond 1,024 ranges they coincide after all.
  struct PidMove {
    size_t trace = 0;
    uint32_t first = 0;
    int64_t by = 0;
  };
  std::vector<PidMove> pid_moves;
  // One line per renamed device. "sda" of the second trace stays "sda" if it is the same disk of
  // the same machine; otherwise it becomes "sda.2".
  std::vector<std::string> renamed;
};

// Merges the traces at `from_paths` (at least two) by arrival into the new trace `to_path`: I/Os,
// losses, marks and queued sizes. Pids of each machine stay apart; traces are of one machine if
// their headers name the same host, with kSame always, with kStart never. If an input is
// unfinished, recovered or not understood entirely, the output is marked as recovered. Memory: one
// frame per trace. kFailedPrecondition, and nothing is written, if `clock` is kWall and a trace
// does not store the wall clock; kInvalidArgument if a trace is the result of a replay, or if
// `clock` is kStart and it is no file, because its beginning is read twice. kUnimplemented, without
// an output file, if a trace has columns or operations that only a newer version knows.
Result<MergeReport> MergeTraces(const std::vector<std::string>& from_paths,
                                const std::string& to_path, MergeClock clock,
                                const TraceWriterOptions& options = {});

}  // namespace blktape
