#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace blktape {

// A queue setting of a disk during a replay: an attribute of /sys/block/DISK/queue.
struct QueueSetting {
  std::string name;   // scheduler, nomerges, read_ahead_kb
  std::string value;  // as the kernel reports it
};

// Parses "scheduler=none". kInvalidArgument for other settings and for impossible values. Does not
// check whether the disk has the scheduler; the kernel does that later.
Result<QueueSetting> ParseQueueSetting(std::string_view text);

}  // namespace blktape
