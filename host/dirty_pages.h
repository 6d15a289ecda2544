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

  // From the kernel's statistics of each device (debugfs) or of the whole machine, if those cannot
  // be read or are not of all data: before Linux 6.10 they are of the root cgroup alone, while what
  // a session's processes write belongs to a cgroup of theirs wherever memory is accounted by
  // cgroup (version 2).
  uint64_t KiB() const;

 private:
  bool InFlight() const;

  std::optional<KernelFs> debugfs_;
  std::vector<std::string> stats_;     // paths of the devices' statistics; none: the machine's
  std::vector<std::string> inflight_;  // of the disks' attributes of that name
};

// What waits or is on its way to be written by `stats`, the statistics of a device
// (bdi_debug_stats_show() in mm/backing-dev.c). They count pages in batches per CPU
// (WB_STAT_BATCH), so that up to 32 KiB times 1 + log2(CPUs) for each CPU may seem to be left for
// ever; their lists of inodes are exact. So it is 0 where these are empty and nothing is
// `in_flight`.
uint64_t DirtyKiB(const std::string& stats, bool in_flight);

}  // namespace blktape
