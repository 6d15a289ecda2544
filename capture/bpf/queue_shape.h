#pragma once

#include <cstdint>
#include <string>

namespace blktape {

// The hardware queues and tags of a disk, which determine the size of the programs' array of
// requests in flight.
struct QueueShape {
  uint32_t queues = 0;  // 0: bio-based, there are no requests
  uint32_t tags = 0;    // per queue: the drive's or the scheduler's, whichever is larger
};

// The shape of the disk with the sysfs folder `folder` (/sys/dev/block/259:0).
QueueShape ReadQueueShape(const std::string& folder);

}  // namespace blktape
