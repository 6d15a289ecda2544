#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "host/disk.h"
#include "host/system_view.h"

namespace blktape {

// Finds the disks to record in sysfs. A disk is a device with its own request queue. Partitions,
// LVM, dm-crypt and md are followed down to the disks below them, because a trace shows what the
// drive saw. Thread-compatible.
class BlockDevices {
 public:
  // `system` must outlive this object and its copies.
  explicit BlockDevices(const SystemView& system = MachineView()) : system_(&system) {}

  // The disks under `device`: "sda", "/dev/sda2", "/dev/mapper/home", a by-id link. One disk for a
  // disk or its partition, several for an md or LVM device. kNotFound, or kInvalidArgument if it is
  // not a block device; the message says what to try.
  Result<std::vector<Disk>> Under(const std::string& device) const;

  // The disks under the file system that contains `path`, including overlays, btrfs on several
  // disks, the log of an xfs and bind mounts. kFailedPrecondition if the file system is not on a
  // block device (tmpfs, NFS), kNotFound for an overlay whose folders are not visible from here.
  Result<std::vector<Disk>> UnderMount(const std::string& path) const;

  // Every disk that is backed by hardware and has a medium: no loop, zram, ram, dm, md, optical or
  // floppy drives. kNotFound if there is none.
  Result<std::vector<Disk>> AllPhysical() const;

  // What lies on any of `disks`, on their partitions or on another layer, ascending by number.
  std::vector<Layer> LayersOn(const std::vector<Disk>& disks) const;

  // Device numbers of the partitions of a disk, ascending.
  std::vector<uint32_t> PartitionsOf(const Disk& disk) const;

  // Whether this disk is still present. Another disk with its name and number does not count.
  bool IsPresent(const Disk& disk) const;
  // Whether any disk has this number.
  bool HasNumber(uint32_t dev) const;

  // A text that changes when a disk is added, removed, exchanged or mounted, or gets or loses its
  // medium. Tells the caller when to look again. Cheap.
  std::string Census() const;

 private:
  Result<Disk> Describe(const std::string& folder) const;
  Status CollectDisks(const std::string& folder, int depth, std::vector<Disk>* disks) const;
  Status CollectMount(const std::string& path, int depth, std::vector<Disk>* disks) const;
  Status CollectOverlay(const std::string& path, const std::string& options, int depth,
                        std::vector<Disk>* disks) const;
  // The folder in /sys/devices of a device number "8:1", or of a /dev path or a plain name.
  Result<std::string> FolderOfNumber(const std::string& number) const;
  Result<std::string> FolderOfName(const std::string& device) const;

  std::optional<std::string> Text(const std::string& path) const;
  std::optional<uint64_t> Number(const std::string& path) const;
  bool IsPhysical(const std::string& folder, const std::string& name) const;

  const SystemView* system_;
};

// Whether `disk` is the common head of the paths to an NVMe drive. The kernel reports no
// completions for its bios: they complete on a path's disk, which has no name in /dev.
bool IsNvmeMultipath(const Disk& disk);

}  // namespace blktape
