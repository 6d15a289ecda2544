#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace blktape {

// A setting of a disk's queue for the time of a replay: an attribute of /sys/block/DISK/queue.
struct QueueSetting {
  std::string name;   // scheduler, nomerges, read_ahead_kb
  std::string value;  // as it is read back
};

// "scheduler=none". kInvalidArgument for other settings, and for values that cannot be. Whether the
// disk has the scheduler is for the kernel to say.
Result<QueueSetting> ParseQueueSetting(std::string_view text);

}  // namespace blktape
