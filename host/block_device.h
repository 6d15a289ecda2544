#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "host/disk.h"

namespace blktape {

// Finds the disks to record, as sysfs shows them. A disk is what has a request queue of its own:
// partitions, LVM, dm-crypt and md are followed down to the disks below them, since the trace is
// about what the drive saw. Thread-compatible.
class BlockDevices {
 public:
  // `root` holds sys, dev and proc; tests give a folder that looks like it.
  explicit BlockDevices(std::string root = "");

  // The disks under `device`: "sda", "/dev/sda2", "/dev/mapper/home", a by-id link. One for a disk
  // or a partition of it, several for an md or LVM device. kNotFound, kInvalidArgument (no block
  // device) with what to try.
  Result<std::vector<Disk>> Under(const std::string& device) const;

  // The disks under the file system that holds `path`; overlay, btrfs of several disks, the log of
  // an xfs and bind mounts included. kFailedPrecondition for one that lies on no block device
  // (tmpfs, NFS), kNotFound for an overlay of folders that cannot be seen from here.
  Result<std::vector<Disk>> UnderMount(const std::string& path) const;

  // Every disk that hardware stands behind and that has a medium: no loop, zram, ram, dm, md,
  // optical or floppy drives. kNotFound if there is none.
  Result<std::vector<Disk>> AllPhysical() const;

  // Device numbers of the partitions of a disk, ascending.
  std::vector<uint32_t> PartitionsOf(const Disk& disk) const;

  // Whether the disk is still there: it, not another one under its name and number.
  bool IsPresent(const Disk& disk) const;

  // A text that changes when a disk comes, goes, is exchanged, gets or loses its medium, or is
  // mounted: to know when to look again. Cheap.
  std::string Census() const;

 private:
  Result<Disk> Describe(const std::string& folder) const;
  Status CollectDisks(const std::string& folder, int depth, std::vector<Disk>* disks) const;
  Status CollectMount(const std::string& path, int depth, std::vector<Disk>* disks) const;
  Status CollectOverlay(const std::string& path, const std::string& options, int depth,
                        std::vector<Disk>* disks) const;
  // The folder in /sys/devices of a device number "8:1"; of a /dev path or a bare name.
  Result<std::string> FolderOfNumber(const std::string& number) const;
  Result<std::string> FolderOfName(const std::string& device) const;

  std::string root_;
};

// Whether `disk` is the common head of the paths to an NVMe drive. Of its bios the kernel tells no
// completion: they complete as those of a path's disk, which has no name in /dev.
bool IsNvmeMultipath(const Disk& disk);

}  // namespace blktape
