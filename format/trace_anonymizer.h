#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "format/trace_writer.h"

namespace blktape {

struct AnonymizeOptions {
  bool shuffle_addresses = true;
  bool keep_wall_clock = false;
  bool keep_process_names = false;
  // Of the places that addresses move to. Not kept in the trace.
  uint64_t seed = 0;
};

struct AnonymizeReport {
  uint64_t records = 0;
  uint64_t lost_events = 0;
  uint64_t processes = 0;  // names that were replaced
  uint64_t islands = 0;    // of touched places, over all devices; each device with one is as it was
  uint64_t still_devices = 0;  // devices of which nothing could move
  uint64_t wide_discards =
      0;  // discards and zeroings that span several islands: they went with their first
};

// Copies the trace at `from_path` to the new file `to_path` without what names people, machines,
// disks and programs; docs/privacy.md says what remains. Times stay as they are, on a clock of
// their own. Messages that only a newer version knows are left out. Reads the trace twice.
// kUnimplemented, and no trace, if it has columns that only a newer version knows; kInvalidArgument
// for the result of a replay.
Result<AnonymizeReport> AnonymizeTrace(const std::string& from_path, const std::string& to_path,
                                       const AnonymizeOptions& options);

}  // namespace blktape
