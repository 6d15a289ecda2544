#include "host/system_view.h"

#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/file.h"

namespace blktape {
namespace {

constexpr char kClassBlock[] = "/sys/class/block/";

class Machine : public SystemView {
 public:
  Result<std::string> Read(const std::string& path) const override { return ReadAttribute(path); }

  std::vector<std::string> List(const std::string& folder) const override {
    std::vector<std::string> names;
    std::error_code error;
    for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
         it.increment(error)) {
      names.push_back(it->path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  Result<std::string> Resolve(const std::string& path) const override {
    std::error_code error;
    const std::filesystem::path real = std::filesystem::canonical(path, error);
    if (error) return ErrnoStatus(error.value(), path);
    return real.string();
  }

  std::optional<FileIdentity> Identify(const std::string& path) const override {
    struct stat info{};
    if (stat(path.c_str(), &info) != 0) return std::nullopt;
    return IdentityOf(info);
  }

  // The path in sysfs leads elsewhere, or nowhere, once the file has been renamed over or removed,
  // or where it was set up in another mount namespace: the kernel knows the file itself.
  std::optional<FileIdentity> LoopBacking(const std::string& name) const override {
    const Result<std::string> path = Read(kClassBlock + name + "/loop/backing_file");
    if (!path.ok()) return std::nullopt;
    const UniqueFd fd(open(("/dev/" + name).c_str(), O_RDONLY | O_CLOEXEC));
    loop_info64 info{};
    if (!fd || ioctl(fd.get(), LOOP_GET_STATUS64, &info) != 0) return Identify(*path);
    FileIdentity identity{.device = info.lo_device, .inode = info.lo_inode};
    identity.regular = info.lo_rdevice == 0;
    if (!identity.regular) {
      identity.block = DeviceNumber{major(info.lo_rdevice), minor(info.lo_rdevice)};
    }
    return identity;
  }

  Result<std::string> DeviceMapperTable(const std::string& name) const override {
    ASSIGN_OR_RETURN(const std::string text, Read(kClassBlock + name + "/dev"));
    const std::optional<DeviceNumber> number = ParseDeviceNumber(text);
    const UniqueFd control(open("/dev/mapper/control", O_RDWR | O_CLOEXEC));
    if (!control || !number) return ErrnoStatus(errno, "/dev/mapper/control");
    for (size_t bytes = 16 << 10; bytes <= 16 << 20; bytes *= 4) {
      std::vector<char> buffer(bytes);
      dm_ioctl header{};
      header.version[0] = DM_VERSION_MAJOR;
      header.data_size = static_cast<uint32_t>(bytes);
      header.data_start = sizeof(header);
      header.flags = DM_STATUS_TABLE_FLAG;
      header.dev = makedev(number->major, number->minor);
      std::memcpy(buffer.data(), &header, sizeof(header));
      if (ioctl(control.get(), DM_TABLE_STATUS, buffer.data()) != 0) {
        return ErrnoStatus(errno, name + ": device-mapper table");
      }
      std::memcpy(&header, buffer.data(), sizeof(header));
      if ((header.flags & DM_BUFFER_FULL_FLAG) != 0) continue;
      return TableText(buffer, header);
    }
    return Status(StatusCode::kResourceExhausted, name + ": its device-mapper table is too long");
  }

 private:
  // linux/dm-ioctl.h: each target's specification and, after it, its arguments up to a NUL byte.
  static std::string TableText(const std::vector<char>& buffer, const dm_ioctl& header) {
    std::string text;
    size_t at = header.data_start;
    for (uint32_t i = 0; i < header.target_count; ++i) {
      dm_target_spec spec{};
      if (at + sizeof(spec) >= buffer.size()) break;
      std::memcpy(&spec, buffer.data() + at, sizeof(spec));
      const char* const arguments = buffer.data() + at + sizeof(spec);
      text += std::to_string(spec.sector_start) + " " + std::to_string(spec.length) + " " +
              std::string(spec.target_type, strnlen(spec.target_type, sizeof(spec.target_type))) +
              " " + std::string(arguments, strnlen(arguments, buffer.size() - at - sizeof(spec))) +
              "\n";
      at = header.data_start + spec.next;
    }
    return text;
  }
};

}  // namespace

bool FileIdentity::SameAs(const FileIdentity& other) const {
  if (block || other.block) return block == other.block;
  return device == other.device && inode == other.inode;
}

FileIdentity IdentityOf(const struct stat& info) {
  FileIdentity identity{.device = info.st_dev, .inode = info.st_ino};
  identity.regular = S_ISREG(info.st_mode);
  if (S_ISBLK(info.st_mode)) {
    identity.block = DeviceNumber{major(info.st_rdev), minor(info.st_rdev)};
  }
  return identity;
}

const SystemView& MachineView() {
  static const Machine machine;
  return machine;
}

std::optional<DeviceNumber> ParseDeviceNumber(const std::string& text) {
  DeviceNumber number;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, number.major);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != ':') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, number.minor);
  if (second.ec != std::errc() || second.ptr != end) return std::nullopt;
  return number;
}

std::optional<std::string> KernelName(const SystemView& system, DeviceNumber number) {
  for (const std::string& name : system.List("/sys/class/block")) {
    const Result<std::string> dev = system.Read(kClassBlock + name + "/dev");
    if (dev.ok() && ParseDeviceNumber(*dev) == number) return name;
  }
  return std::nullopt;
}

std::optional<std::string> DiskOfPartition(const SystemView& system, const std::string& name) {
  if (!system.Read(kClassBlock + name + "/partition").ok()) return std::nullopt;
  for (const std::string& disk : system.List("/sys/class/block")) {
    if (system.Read(kClassBlock + disk + "/" + name + "/partition").ok()) return disk;
  }
  return std::nullopt;
}

}  // namespace blktape
