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
  std::string drive;  // the kernel's name of one of its disks, or what stands for it
  uint64_t begin = 0;
  uint64_t end = 0;
  auto operator<=>(const Extent&) const = default;
};

// Which sectors of which drives lie under the block devices of a machine: partitions, device-mapper
// tables and arrays are followed down to whole disks, and disks that are paths to one drive count
// as one. Reads everything anew with each question. Thread-compatible.
class SectorMap {
 public:
  explicit SectorMap(const SystemView& system);

  // What a write to the block device `name` changes.
  std::vector<Extent> WrittenBy(const std::string& name) const;
  // What the content of `name` is made of: more than that for a snapshot, whose content is its
  // origin's.
  std::vector<Extent> NeededBy(const std::string& name) const;

  // Every device below `name`, from its disk (if it is a partition) and its slaves on; sorted. What
  // is below a loop device is not among them.
  std::vector<std::string> Below(const std::string& name) const;

  // What the kernel or the drive says by which a disk is told from all others: "naa.5000c500...";
  // absent for what says nothing. `disk`: no partition.
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
  std::map<std::string, std::string> disk_of_;   // of each partition
  std::map<std::string, std::string> drive_of_;  // of each disk: the first with the same DriveId
};

// Whether two such lists have a sector in common.
bool Overlap(const std::vector<Extent>& a, const std::vector<Extent>& b);

}  // namespace blktape
