#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace blktape {

// The health of a drive, as far as the kernel or the drive reports it. Temperatures are in
// thousandths of a degree Celsius.
struct DriveHealth {
  std::optional<int64_t> temperature;
  // The drive reports that it is too hot above this.
  std::optional<int64_t> temperature_limit;
  // How often the drive has throttled itself because of its temperature since it was made, and for
  // how many seconds in total. NVMe only.
  std::optional<uint64_t> throttles;
  std::optional<uint64_t> throttled_s;
};

// The health of the disk with the resolved sysfs folder `folder`: from the kernel's hardware
// monitor (in the nvme driver since Linux 5.5, in the module drivetemp for SATA and SAS) and, if
// `fd` is open on an NVMe drive, from its SMART log (needs root). Sends commands to the drive, so
// call it before and after a measurement, not during it.
DriveHealth ReadDriveHealth(const std::string& folder, int fd);

// Parses the SMART log page of NVMe (base specification 2.0, figure 207), 512 bytes.
DriveHealth ParseNvmeSmartLog(std::span<const std::byte> log);

// The state of the volatile write cache that the drive itself reports: "write back" if it has one
// that is on, else "write through". Absent if neither the drive nor the kernel reports it. The
// queue's write_cache attribute is different: it is what the kernel assumes, and users can set it.
std::optional<std::string> DriveWriteCache(const std::string& folder, int fd);

// How often the CPUs of this machine were throttled because of their temperature since boot; absent
// if the kernel does not report it. `cpus`: /sys/devices/system/cpu.
std::optional<uint64_t> CpuThrottles(const std::string& cpus = "/sys/devices/system/cpu");

}  // namespace blktape
