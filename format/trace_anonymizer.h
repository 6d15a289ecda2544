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
  // Seed for the new places of addresses. Not stored in the trace.
  uint64_t seed = 0;
};

struct AnonymizeReport {
  uint64_t records = 0;
  uint64_t lost_events = 0;
  uint64_t processes = 0;  // number of names replaced
  // Islands of touched addresses, over all devices. A device with only one is unchanged.
  uint64_t islands = 0;
  uint64_t still_devices = 0;  // devices on which nothing could move
  // Discards and zeroings over several islands; they moved with their first island.
  uint64_t wide_discards = 0;
};

// Copies the trace at `from_path` to the new file `to_path` without names of people, machines,
// disks and programs; docs/privacy.md says what remains. Intervals stay the same, on a clock with a
// new origin. Messages that only a newer version knows are left out. Reads the trace twice.
// kUnimplemented, without an output file, if the trace has columns that only a newer version knows;
// kInvalidArgument for the result of a replay.
Result<AnonymizeReport> AnonymizeTrace(const std::string& from_path, const std::string& to_path,
                                       const AnonymizeOptions& options);

}  // namespace blktape
