#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/disk.h"
#include "host/kernel_fs.h"

namespace blktape {

// How much data in the page cache is waiting to be written to some disks, directly or through
// partitions, LVM, dm-crypt and md above them. One thread.
class DirtyPages {
 public:
  explicit DirtyPages(const std::vector<Disk>& disks);

  // From the kernel's statistics of each device (debugfs); if they cannot be read, from those of
  // the whole machine.
  uint64_t KiB() const;

 private:
  std::optional<KernelFs> debugfs_;
  std::vector<std::string> paths_;  // paths of the devices' statistics
};

// The sum of the "NAME: N kB" lines in `text` for all `names`.
uint64_t SumKiB(const std::string& text, const std::vector<std::string>& names);

}  // namespace blktape
