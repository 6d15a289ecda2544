#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace blktape {

// The small files of sysfs that queue settings are made of: the seam that lets their changing be
// tested on disks that do not exist. Thread-compatible.
class QueueAttributes {
 public:
  virtual ~QueueAttributes() = default;
  // The text without white space around it.
  virtual Result<std::string> Read(const std::string& path) const = 0;
  virtual Status Write(const std::string& path, std::string_view value) = 0;
  // Names in a folder, sorted; none if it is absent.
  virtual std::vector<std::string> List(const std::string& folder) const = 0;
};

// The machine we run on.
QueueAttributes& MachineQueueAttributes();

}  // namespace blktape
