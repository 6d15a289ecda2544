#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "host/system_view.h"

namespace blktape {

// A range of a drive, in sectors of 512 bytes.
struct Extent {
  std::string drive;  // the kernel's name of one of its disks, or a substitute
  uint64_t begin = 0;
  uint64_t end = 0;
  auto operator<=>(const Extent&) const = default;
};

// Finds the drive sectors below the block devices of a machine. Follows partitions, device-mapper
// tables and arrays down to whole disks; disks that are paths to one drive count as one. Reads the
// machine's state again on each call. Thread-compatible.
class SectorMap {
 public:
  explicit SectorMap(const SystemView& system);

  // The sectors that a write to the block device `name` may change.
  std::vector<Extent> WrittenBy(const std::string& name) const;
  // The sectors that hold the content of `name`. For a snapshot these are more than WrittenBy(),
  // since its content is partly in its origin.
  std::vector<Extent> NeededBy(const std::string& name) const;

  // All devices below `name`, sorted: its disk (if it is a partition), its slaves, the devices
  // below those, and so on. Devices below a loop device are not included.
  std::vector<std::string> Below(const std::string& name) const;

  // The unique identifier that the kernel or the drive reports for a disk: "naa.5000c500...";
  // absent if there is none. `disk` must not be a partition.
  std::optional<std::string> DriveId(const std::string& disk) const;

 private:
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  void Collect(const std::string& name, Range range, bool needed, int depth,
               std::vector<Extent>* extents) const;
  void CollectTable(const std::string& table, Range range, bool needed, int depth,
                    std::vector<Extent>* extents) const;
  void CollectDevice(const std::string& number, Range range, bool needed, int depth,
                     std::vector<Extent>* extents) const;
  void CollectBelow(const std::string& name, int depth, std::vector<std::string>* names) const;

  const SystemView& system_;
  std::map<DeviceNumber, std::string> names_;
  std::map<std::string, std::string> disk_of_;   // disk of each partition
  std::map<std::string, std::string> drive_of_;  // for each disk: the first disk with the same
                                                 // DriveId
};

// Whether two lists have a sector in common.
bool Overlap(const std::vector<Extent>& a, const std::vector<Extent>& b);

}  // namespace blktape
