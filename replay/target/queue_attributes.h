#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace blktape {

// Reads and writes the sysfs attributes of disk queues. Tests replace it to change settings of
// disks that do not exist. Thread-compatible.
class QueueAttributes {
 public:
  virtual ~QueueAttributes() = default;
  // The attribute's text, without surrounding white space.
  virtual Result<std::string> Read(const std::string& path) const = 0;
  virtual Status Write(const std::string& path, std::string_view value) = 0;
  // The names in a folder, sorted; empty if the folder does not exist.
  virtual std::vector<std::string> List(const std::string& folder) const = 0;
};

// The attributes of this machine.
QueueAttributes& MachineQueueAttributes();

}  // namespace blktape
