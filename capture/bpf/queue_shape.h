#pragma once

#include <cstdint>
#include <string>

namespace blktape {

// Hardware queues and tags of a disk, for the programs' array of requests in flight.
struct QueueShape {
  uint32_t queues = 0;  // 0: bio-based, there are no requests
  uint32_t tags = 0;    // of a queue: the drive's or the scheduler's, whichever are more
};

// Of the disk whose folder in sysfs is `folder` (/sys/dev/block/259:0).
QueueShape ReadQueueShape(const std::string& folder);

}  // namespace blktape
