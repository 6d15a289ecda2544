#pragma once

#include <cstdint>
#include <string>

#include "replay/target/target.h"

namespace blktape {

// Which reads and writes of a block device can complete by polling. Requests that the block layer
// splits cannot: block/blk-merge.c takes them off the poll queue, and a polling ring then waits for
// them forever (seen on Linux 6.1).
struct PollLimits {
  bool has_queues = true;           // false: the driver has no poll queues
  uint64_t max_bytes = UINT64_MAX;  // of a request whose buffer is page-aligned
  uint64_t chunk_bytes = 0;         // no request may cross a multiple of this; 0: no such limit
  uint64_t begin_bytes = 0;         // start of the partition on the disk that has the chunks

  bool Polls(uint64_t offset_bytes, uint64_t bytes) const;
};

// Reads the limits from sysfs; a missing attribute is no limit. `sys_folder`: "/sys/dev/block/8:1"
// of a disk or a partition.
PollLimits ReadPollLimits(const std::string& sys_folder);

// The limits of a target. For a file they are unlimited, since the disk below is not known.
PollLimits PollLimitsOf(const Target& target);

}  // namespace blktape
