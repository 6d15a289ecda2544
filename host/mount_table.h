#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/system_view.h"

namespace blktape {

// One line of /proc/self/mountinfo (proc(5)).
struct MountEntry {
  std::string device_number;  // "8:1"; not a real device if the file system has no single disk
  std::string mount_point;
  std::string type;     // "ext4"
  std::string source;   // "/dev/sda1", "tmpfs"
  std::string options;  // of the superblock, comma-separated, escaped as in the file
};

// All mounts, in the order of the file. `mountinfo` is its text; lines that do not match proc(5)
// are skipped.
std::vector<MountEntry> ParseMounts(std::string_view mountinfo);

// Unescapes a word of mountinfo or /proc/swaps, in which the kernel writes blank, tab, newline and
// backslash as three octal digits: "\040".
std::string UnescapeOctal(std::string_view text);

// The mount that holds the absolute, resolved `path`: the one the kernel comes to on its way along
// the path, which need not be the longest mount point, as that may lie below a later mount.
std::optional<MountEntry> FindMount(std::string_view mountinfo, std::string_view path);

// The folders in an overlay's options, as given to mount(8): some may be relative.
std::vector<std::string> OverlayLayers(std::string_view options);

// The additional devices of an xfs, for its log and its real-time data.
std::vector<std::string> XfsDevices(std::string_view options);

// The sysfs folders of all devices of the btrfs to which `folder`, the sysfs folder of a device,
// belongs.
std::vector<std::string> BtrfsMembers(const SystemView& system, const std::string& folder);

}  // namespace blktape
