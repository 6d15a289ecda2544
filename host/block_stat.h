#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace blktape {

// What a disk or partition counted since it appeared (Documentation/block/stat.rst of the kernel).
// Sectors are of 512 bytes. It tells whether anybody but us did I/O on a target.
struct BlockStat {
  uint64_t reads = 0;
  uint64_t read_sectors = 0;
  uint64_t writes = 0;  // write zeroes among them
  uint64_t write_sectors = 0;
  uint64_t discards = 0;  // since Linux 4.18, else 0
  uint64_t discard_sectors = 0;
  uint64_t flushes = 0;  // since Linux 5.5, whole disks only

  uint64_t sectors() const { return read_sectors + write_sectors + discard_sectors; }
};

// The text of a `stat` attribute; absent if it is none.
std::optional<BlockStat> ParseBlockStat(std::string_view text);

// Of the device whose sysfs folder is `folder` ("/sys/class/block/sda1"); absent if it cannot be
// read or if the device keeps no statistics (queue/iostats is 0).
std::optional<BlockStat> ReadBlockStat(const std::string& folder);

}  // namespace blktape
