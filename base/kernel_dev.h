#pragma once

#include <cstdint>
#include <string>

namespace blktape {

// The number of a block device as the kernel keeps it (include/linux/kdev_t.h): 12 bits of major
// and 20 bits of minor number. Not the dev_t of user space.
inline constexpr uint32_t kKernelDevMinorBits = 20;

constexpr uint32_t KernelDev(uint32_t major_number, uint32_t minor_number) {
  return major_number << kKernelDevMinorBits | minor_number;
}
constexpr uint32_t KernelDevMajor(uint32_t dev) { return dev >> kKernelDevMinorBits; }
constexpr uint32_t KernelDevMinor(uint32_t dev) { return dev & ((1u << kKernelDevMinorBits) - 1); }

// "8:16", as sysfs has it.
inline std::string KernelDevText(uint32_t dev) {
  return std::to_string(KernelDevMajor(dev)) + ":" + std::to_string(KernelDevMinor(dev));
}

}  // namespace blktape
