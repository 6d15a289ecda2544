#include "host/drive_health.h"

#include <linux/nvme_ioctl.h>
#include <sys/ioctl.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <vector>

#include "base/file.h"

namespace blktape {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kZeroCelsiusInKelvin = 273;
constexpr size_t kSmartLogBytes = 512;
constexpr size_t kIdentifyBytes = 4096;

// NVMe base specification: opcodes of admin commands, and what they are asked for.
constexpr uint8_t kGetLogPage = 0x02;
constexpr uint8_t kIdentify = 0x06;
constexpr uint8_t kGetFeatures = 0x0a;
constexpr uint32_t kSmartLog = 0x02;
constexpr uint32_t kAllNamespaces = 0xffffffff;
constexpr uint32_t kController = 0x01;
constexpr uint32_t kVolatileWriteCache = 0x06;
constexpr size_t kVwcOfIdentify = 525;

template <typename T>
std::optional<T> Number(const std::string& path) {
  const auto text = ReadAttribute(path);
  T number = 0;
  if (!text.ok()) return std::nullopt;
  const auto parsed = std::from_chars(text->data(), text->data() + text->size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text->data() + text->size()) return std::nullopt;
  return number;
}

std::vector<fs::path> Entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    entries.push_back(it->path());
  }
  return entries;
}

// The hardware monitor of a disk's device: device/hwmon3 or device/hwmon/hwmon3.
std::optional<std::string> MonitorOf(const std::string& folder) {
  for (const char* parent : {"/device", "/device/hwmon"}) {
    for (const fs::path& entry : Entries(folder + parent)) {
      const std::string input = entry.string() + "/temp1_input";
      if (entry.filename().string().starts_with("hwmon") && fs::exists(input)) {
        return entry.string();
      }
    }
  }
  return std::nullopt;
}

bool IsNvme(const std::string& folder) {
  return fs::path(folder).filename().string().starts_with("nvme");
}

// Whether the drive has answered, and the first word of what it said.
std::optional<uint32_t> Ask(int fd, nvme_admin_cmd command) {
  if (fd < 0 || ioctl(fd, NVME_IOCTL_ADMIN_CMD, &command) != 0) return std::nullopt;
  return command.result;
}

template <size_t kBytes>
nvme_admin_cmd Command(uint8_t opcode, std::array<std::byte, kBytes>* answer) {
  nvme_admin_cmd command{};
  command.opcode = opcode;
  command.addr = reinterpret_cast<uintptr_t>(answer->data());
  command.data_len = kBytes;
  return command;
}

uint64_t LittleEndian(std::span<const std::byte> bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) value |= std::to_integer<uint64_t>(bytes[at + i]) << (8 * i);
  return value;
}

}  // namespace

DriveHealth ParseNvmeSmartLog(std::span<const std::byte> log) {
  DriveHealth health;
  if (log.size() < kSmartLogBytes) return health;
  const auto kelvin = static_cast<int64_t>(LittleEndian(log, 1, 2));
  if (kelvin > 0) health.temperature = (kelvin - kZeroCelsiusInKelvin) * 1000;
  // Two thresholds, each with a count of transitions and a time in seconds.
  health.throttles = LittleEndian(log, 216, 4) + LittleEndian(log, 220, 4);
  health.throttled_s = LittleEndian(log, 224, 4) + LittleEndian(log, 228, 4);
  return health;
}

DriveHealth ReadDriveHealth(const std::string& folder, int fd) {
  DriveHealth health;
  if (IsNvme(folder)) {
    alignas(4096) std::array<std::byte, kSmartLogBytes> log{};
    nvme_admin_cmd command = Command(kGetLogPage, &log);
    command.nsid = kAllNamespaces;
    command.cdw10 = kSmartLog | (kSmartLogBytes / 4 - 1) << 16;
    if (Ask(fd, command)) health = ParseNvmeSmartLog(log);
  }
  if (const auto monitor = MonitorOf(folder)) {
    if (const auto now = Number<int64_t>(*monitor + "/temp1_input")) health.temperature = now;
    health.temperature_limit = Number<int64_t>(*monitor + "/temp1_max");
  }
  return health;
}

std::optional<std::string> DriveWriteCache(const std::string& folder, int fd) {
  if (IsNvme(folder)) {
    alignas(4096) std::array<std::byte, kIdentifyBytes> controller{};
    nvme_admin_cmd identify = Command(kIdentify, &controller);
    identify.cdw10 = kController;
    if (!Ask(fd, identify)) return std::nullopt;
    if (!std::to_integer<bool>(controller[kVwcOfIdentify] & std::byte{1})) return "write through";
    nvme_admin_cmd feature{};
    feature.opcode = kGetFeatures;
    feature.cdw10 = kVolatileWriteCache;
    const std::optional<uint32_t> enabled = Ask(fd, feature);
    if (!enabled) return std::nullopt;
    return (*enabled & 1) != 0 ? "write back" : "write through";
  }
  // SCSI and SATA: "write back", "write back, no read (daft)", "write through", "none".
  for (const fs::path& disk : Entries(folder + "/device/scsi_disk")) {
    const auto type = ReadAttribute(disk.string() + "/cache_type");
    if (type.ok()) return type->starts_with("write back") ? "write back" : "write through";
  }
  // virtio.
  if (const auto type = ReadAttribute(folder + "/cache_type"); type.ok()) return *type;
  return std::nullopt;
}

std::optional<uint64_t> CpuThrottles(const std::string& cpus) {
  std::optional<uint64_t> sum;
  for (const fs::path& cpu : Entries(cpus)) {
    for (const char* count : {"core_throttle_count", "package_throttle_count"}) {
      if (const auto one = Number<uint64_t>(cpu.string() + "/thermal_throttle/" + count)) {
        sum = sum.value_or(0) + *one;
      }
    }
  }
  return sum;
}

}  // namespace blktape
