#pragma once

#include <cstdint>
#include <string>

#include "replay/target/target.h"

namespace blktape {

// Which reads and writes of a block device complete by polling. What the block layer splits does
// not: block/blk-merge.c takes such a request off the poll queue, and a ring that polls then waits
// for it for ever (seen on Linux 6.1).
struct PollLimits {
  bool has_queues = true;           // false: the driver has no poll queues
  uint64_t max_bytes = UINT64_MAX;  // of a request whose buffer begins with a page
  uint64_t chunk_bytes = 0;         // no request may cross a multiple of this; 0: there is none
  uint64_t begin_bytes = 0;         // of a partition, on the disk of the chunks

  bool Polls(uint64_t offset_bytes, uint64_t bytes) const;
};

// From sysfs; what it does not say does not limit. `sys_folder`: "/sys/dev/block/8:1" of a disk or
// a partition.
PollLimits ReadPollLimits(const std::string& sys_folder);

// Of a file nothing is known of the disk below.
PollLimits PollLimitsOf(const Target& target);

}  // namespace blktape
