#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace blktape {

// The I/O statistics of a disk or partition since it appeared (Documentation/block/stat.rst of the
// kernel). Sectors have 512 bytes. Used to see whether another program did I/O on a target.
struct BlockStat {
  uint64_t reads = 0;
  uint64_t read_sectors = 0;
  uint64_t read_ms = 0;  // sum of what each took
  uint64_t writes = 0;   // write zeroes and flushes of software among them
  uint64_t write_sectors = 0;
  uint64_t write_ms = 0;
  uint64_t discards = 0;  // since Linux 4.18, else 0
  uint64_t discard_sectors = 0;
  uint64_t flushes = 0;  // since Linux 5.5, whole disks only

  uint64_t sectors() const { return read_sectors + write_sectors + discard_sectors; }
};

// Parses the text of a `stat` attribute; absent if it is malformed.
std::optional<BlockStat> ParseBlockStat(std::string_view text);

// The statistics of the device with the sysfs folder `folder` ("/sys/class/block/sda1"); absent if
// they cannot be read or if the device keeps none (queue/iostats is 0).
std::optional<BlockStat> ReadBlockStat(const std::string& folder);

}  // namespace blktape
