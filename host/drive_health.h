#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace blktape {

// How a drive is, as far as the kernel or the drive tells. Temperatures are in thousandths of a
// degree Celsius.
struct DriveHealth {
  std::optional<int64_t> temperature;
  // The drive says that it is too hot above this.
  std::optional<int64_t> temperature_limit;
  // How often it has slowed itself down for its temperature since it was made, and for how many
  // seconds in all. NVMe only.
  std::optional<uint64_t> throttles;
  std::optional<uint64_t> throttled_s;
};

// Of the disk whose resolved sysfs folder is `folder`: by the kernel's hardware monitor (the nvme
// driver's own from Linux 5.5 on, the module drivetemp for SATA and SAS), and where `fd` is open on
// an NVMe drive by its SMART log (needs root). Asks the drive: for before and after a measurement.
DriveHealth ReadDriveHealth(const std::string& folder, int fd);

// The SMART log page of NVMe (base specification 2.0, figure 207), 512 bytes.
DriveHealth ParseNvmeSmartLog(std::span<const std::byte> log);

// What the drive itself says of its volatile write cache: "write back" if it has one and it is on,
// else "write through". Absent where neither drive nor kernel tells. The queue's write_cache is
// what the kernel goes by and can be set by hand.
std::optional<std::string> DriveWriteCache(const std::string& folder, int fd);

// How often the CPUs of this machine were slowed down for their temperature since it started;
// absent where the kernel does not tell. `cpus`: /sys/devices/system/cpu.
std::optional<uint64_t> CpuThrottles(const std::string& cpus = "/sys/devices/system/cpu");

}  // namespace blktape
