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

// What a path leads to, symbolic links followed.
struct FileIdentity {
  uint64_t device = 0;  // of the file system it lies on
  uint64_t inode = 0;
  std::optional<DeviceNumber> block = std::nullopt;  // present: a block device
  bool regular = false;

  // Two block devices are the same by their number, whatever node names them.
  bool SameAs(const FileIdentity& other) const;
};

// Of what stat() or fstat() has told.
FileIdentity IdentityOf(const struct stat& info);

// /proc, /sys and the paths they name: the seam that lets the guard be tested on machines that do
// not exist. Thread-compatible.
class SystemView {
 public:
  virtual ~SystemView() = default;
  // The text of a small file without white space around it.
  virtual Result<std::string> Read(const std::string& path) const = 0;
  // Names in a folder, sorted; none if it is absent.
  virtual std::vector<std::string> List(const std::string& folder) const = 0;
  // Absent if there is no such file.
  virtual std::optional<FileIdentity> Identify(const std::string& path) const = 0;
  // What the loop device `name` lies on; absent if it is set up on nothing, or is no loop device.
  virtual std::optional<FileIdentity> LoopBacking(const std::string& name) const = 0;
  // The table of the device-mapper device `name` ("dm-0"), a line a target as `dmsetup table`
  // prints them. Fails where the kernel does not tell it, as to those without the right to.
  virtual Result<std::string> DeviceMapperTable(const std::string& name) const = 0;
};

// The machine we run on.
const SystemView& MachineView();

// "8:17".
std::optional<DeviceNumber> ParseDeviceNumber(const std::string& text);

// The kernel's name of a block device ("sda1"); absent if sysfs does not show it.
std::optional<std::string> KernelName(const SystemView& system, DeviceNumber number);

// The disk that `name` is a partition of; absent for what is no partition.
std::optional<std::string> DiskOfPartition(const SystemView& system, const std::string& name);

}  // namespace blktape
