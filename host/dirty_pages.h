#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/disk.h"
#include "host/kernel_fs.h"

namespace blktape {

// How much data in the page cache still waits to be written to some disks, themselves or through
// partitions, LVM, dm-crypt and md above them. One thread.
class DirtyPages {
 public:
  explicit DirtyPages(const std::vector<Disk>& disks);

  // By the kernel's statistics of each device (debugfs); where they cannot be read, those of the
  // whole machine.
  uint64_t KiB() const;

 private:
  std::optional<KernelFs> debugfs_;
  std::vector<std::string> paths_;  // of the devices' statistics
};

// Sum of the "NAME: N kB" lines of `names` in `text`.
uint64_t SumKiB(const std::string& text, const std::vector<std::string>& names);

}  // namespace blktape
