#pragma once

#include <cstdint>
#include <string>

namespace blktape {

// Hardware queues and tags of a disk, for the programs' array of requests in flight.
struct QueueShape {
  uint32_t queues = 0;  // 0: bio-based, there are no requests
  uint32_t tags = 0;    // of the queue that has most
};

// Of the disk whose folder in sysfs is `folder` (/sys/dev/block/259:0).
QueueShape ReadQueueShape(const std::string& folder);

}  // namespace blktape
