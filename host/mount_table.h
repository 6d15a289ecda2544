#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace blktape {

// One line of /proc/self/mountinfo (proc(5)).
struct MountEntry {
  std::string device_number;  // "8:1"; of a file system without one disk a number of no device
  std::string mount_point;
  std::string type;     // "ext4"
  std::string source;   // "/dev/sda1", "tmpfs"
  std::string options;  // of the superblock, by commas, escaped as in the file
};

// The mount that holds the absolute, resolved `path`: the one the kernel comes to on its way along
// the path, which need not be the longest mount point, as that may lie below a later mount.
// `mountinfo` is the text of the file; lines that are not as proc(5) has them are passed over.
std::optional<MountEntry> FindMount(std::string_view mountinfo, std::string_view path);

// The folders of an overlay's options, as they were given to mount(8): some may be relative.
std::vector<std::string> OverlayLayers(std::string_view options);

// The devices that an xfs has beside its main one, for its log and its real-time data.
std::vector<std::string> XfsDevices(std::string_view options);

// The sysfs folders of all devices of the btrfs that `folder`, a sysfs folder of a device, belongs
// to.
std::vector<std::string> BtrfsMembers(const std::string& sys_fs_btrfs, const std::string& folder);

}  // namespace blktape
