#pragma once

#include <sys/stat.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace blktape {

struct DeviceNumber {
  uint32_t major = 0;
  uint32_t minor = 0;
  auto operator<=>(const DeviceNumber&) const = default;
};

// The object that a path refers to, after following symbolic links.
struct FileIdentity {
  uint64_t device = 0;  // device of its file system
  uint64_t inode = 0;
  std::optional<DeviceNumber> block = std::nullopt;  // present: a block device
  bool regular = false;

  // Block devices are compared by their number, not by their device node.
  bool SameAs(const FileIdentity& other) const;
};

// The identity from the result of stat() or fstat().
FileIdentity IdentityOf(const struct stat& info);

// /proc, /sys and the paths in them. All code that needs facts about this machine uses this
// interface; tests replace it to simulate other machines, and paths are then those of the simulated
// machine. Thread-compatible.
class SystemView {
 public:
  virtual ~SystemView() = default;
  // The text of a small file, without surrounding white space.
  virtual Result<std::string> Read(const std::string& path) const = 0;
  // The names in a folder, sorted; empty if the folder does not exist.
  virtual std::vector<std::string> List(const std::string& folder) const = 0;
  // `path` with symbolic links resolved. Fails, with the reason, if it does not exist.
  virtual Result<std::string> Resolve(const std::string& path) const = 0;
  // Absent if there is no such file.
  virtual std::optional<FileIdentity> Identify(const std::string& path) const = 0;
  // The backing file of the loop device `name`; absent if it has none, or if `name` is not a loop
  // device.
  virtual std::optional<FileIdentity> LoopBacking(const std::string& name) const = 0;
  // The table of the device-mapper device `name` ("dm-0"), one line per target as printed by
  // `dmsetup table`. Fails if the kernel does not show it, for example without sufficient rights.
  virtual Result<std::string> DeviceMapperTable(const std::string& name) const = 0;
};

// The view of this machine.
const SystemView& MachineView();

// "8:17".
std::optional<DeviceNumber> ParseDeviceNumber(const std::string& text);

// The kernel's name of a block device ("sda1"); absent if it is not in sysfs.
std::optional<std::string> KernelName(const SystemView& system, DeviceNumber number);

// The disk that `name` is a partition of; absent if it is not a partition.
std::optional<std::string> DiskOfPartition(const SystemView& system, const std::string& name);

}  // namespace blktape
