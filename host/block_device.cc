#include "host/block_device.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "host/mount_table.h"
#include "host/sysfs_device.h"

namespace blktape {
namespace {

namespace fs = std::filesystem;

// dm over md over dm over partitions: real stacks have four levels or so. A bound, since a damaged
// or faked sysfs must not make us recurse for ever.
constexpr int kMaxStackDepth = 16;
// Linux mounts no overlay on an overlay on an overlay; what looks like it are folders of another
// mount namespace.
constexpr int kMaxOverlayDepth = 2;

std::optional<std::string> Text(const std::string& path) {
  Result<std::string> text = ReadAttribute(path);
  if (!text.ok() || text->empty()) return std::nullopt;
  return *std::move(text);
}

std::optional<uint64_t> Number(const std::string& path) {
  const std::optional<std::string> text = Text(path);
  if (!text) return std::nullopt;
  uint64_t number = 0;
  const char* end = text->data() + text->size();
  const auto parsed = std::from_chars(text->data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

// "8:17" to the kernel's dev_t.
std::optional<uint32_t> DevOf(std::string_view number) {
  uint32_t major = 0;
  uint32_t minor = 0;
  const char* end = number.data() + number.size();
  const auto first = std::from_chars(number.data(), end, major);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != ':') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, minor);
  if (second.ec != std::errc() || second.ptr != end) return std::nullopt;
  return (major << 20) | minor;
}

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

void AddOnce(Disk device, std::vector<Disk>* disks) {
  for (const Disk& one : *disks) {
    if (one.dev == device.dev) return;
  }
  disks->push_back(std::move(device));
}

bool IsPhysical(const std::string& folder, const std::string& name) {
  if (StartsWith(name, "sr") || StartsWith(name, "fd")) return false;
  if (folder.find("/devices/virtual/block/") != std::string::npos) return false;
  return Number(folder + "/size").value_or(0) > 0 && Number(folder + "/hidden").value_or(0) == 0;
}

}  // namespace

BlockDevices::BlockDevices(std::string root) : root_(std::move(root)) {}

Result<Disk> BlockDevices::Describe(const std::string& folder) const {
  Disk disk;
  ASSIGN_OR_RETURN(disk.description, DescribeDisk(folder));
  // In brackets, as <sys/sysmacros.h> has macros of these names.
  disk.dev = (disk.description.major)() << 20 | (disk.description.minor)();
  // What has requests has hardware queues to put them on, if only one that is simulated.
  disk.bio_based = disk.description.hardware_queues() == 0;
  disk.sequence = Number(folder + "/diskseq");
  if (const auto ranges = Number(folder + "/queue/max_discard_segments")) {
    disk.discard_ranges = static_cast<uint32_t>(*ranges);
  }
  if (!disk.description.zoned().empty() && disk.description.zoned() != "none") {
    disk.zone_sectors = Number(folder + "/queue/chunk_sectors").value_or(0);
  }
  return disk;
}

Result<std::string> BlockDevices::FolderOfNumber(const std::string& number) const {
  std::error_code error;
  const fs::path folder = fs::canonical(root_ + "/sys/dev/block/" + number, error);
  if (error) {
    return Status(StatusCode::kNotFound, "there is no block device " + number + " in /sys");
  }
  return folder.string();
}

Result<std::string> BlockDevices::FolderOfName(const std::string& device) const {
  std::error_code error;
  if (device.find('/') == std::string::npos && !device.empty()) {
    // sysfs writes a '/' of a device's name as '!'.
    const fs::path folder = fs::canonical(root_ + "/sys/class/block/" + device, error);
    if (!error) return folder.string();
    return Status(StatusCode::kNotFound,
                  "there is no block device \"" + device + "\"\n  try:  lsblk");
  }
  const std::string path = root_ + device;
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) {
    const Status status = ErrnoStatus(errno, device);
    return Status(status.code(), status.message() + "\n  try:  lsblk");
  }
  if (!S_ISBLK(info.st_mode)) {
    return Status(StatusCode::kInvalidArgument, device + " is no block device\n  try:  --mount " +
                                                    device + " to record the disks it lies on");
  }
  return FolderOfNumber(fmt::format("{}:{}", major(info.st_rdev), minor(info.st_rdev)));
}

Status BlockDevices::CollectDisks(const std::string& folder, int depth,
                                  std::vector<Disk>* disks) const {
  if (depth > kMaxStackDepth) {
    return Status(StatusCode::kFailedPrecondition, folder + ": devices stacked without end");
  }
  std::error_code error;
  if (fs::exists(folder + "/partition", error)) {
    return CollectDisks(fs::path(folder).parent_path().string(), depth + 1, disks);
  }
  std::vector<std::string> slaves;
  for (fs::directory_iterator it(folder + "/slaves", error), end; !error && it != end;
       it.increment(error)) {
    std::error_code unresolved;
    const fs::path slave = fs::canonical(it->path(), unresolved);
    if (!unresolved) slaves.push_back(slave.string());
  }
  std::sort(slaves.begin(), slaves.end());
  for (const std::string& slave : slaves) {
    RETURN_IF_ERROR(CollectDisks(slave, depth + 1, disks));
  }
  if (!slaves.empty()) return OkStatus();
  ASSIGN_OR_RETURN(Disk disk, Describe(folder));
  AddOnce(std::move(disk), disks);
  return OkStatus();
}

Result<std::vector<Disk>> BlockDevices::Under(const std::string& device) const {
  ASSIGN_OR_RETURN(const std::string folder, FolderOfName(device));
  std::vector<Disk> disks;
  RETURN_IF_ERROR(CollectDisks(folder, 0, &disks));
  return disks;
}

Status BlockDevices::CollectOverlay(const std::string& path, const std::string& options, int depth,
                                    std::vector<Disk>* disks) const {
  bool found = false;
  Status diskless;
  for (const std::string& layer : OverlayLayers(options)) {
    std::error_code error;
    if (depth == kMaxOverlayDepth || layer[0] != '/' || !fs::exists(root_ + layer, error)) {
      return Status(StatusCode::kNotFound, path + " lies on an overlay of folders (" + layer +
                                               ") that cannot be found from here\n"
                                               "  try:  --device NAME; lsblk lists names");
    }
    const Status status = CollectMount(layer, depth + 1, disks);
    if (status.code() == StatusCode::kFailedPrecondition) {
      diskless = status;  // a layer in memory beside others on disks
      continue;
    }
    RETURN_IF_ERROR(status);
    found = true;
  }
  return found ? OkStatus() : diskless;
}

Status BlockDevices::CollectMount(const std::string& path, int depth,
                                  std::vector<Disk>* disks) const {
  std::error_code error;
  fs::path real = fs::canonical(root_ + path, error);
  if (error) return ErrnoStatus(error.value(), path);
  if (!root_.empty()) real = "/" + real.lexically_relative(fs::canonical(root_)).string();
  ASSIGN_OR_RETURN(const std::string table, ReadFile(root_ + "/proc/self/mountinfo"));
  const std::optional<MountEntry> mount = FindMount(table, real.string());
  if (!mount) return Status(StatusCode::kNotFound, path + ": in no mounted file system");
  if (mount->type == "overlay") return CollectOverlay(path, mount->options, depth, disks);
  // btrfs and others that span disks have a device number of no block device; the source names one
  // of their disks (bcachefs all of them, by colons).
  const Result<std::string> by_number = FolderOfNumber(mount->device_number);
  if (by_number.ok()) {
    RETURN_IF_ERROR(CollectDisks(*by_number, 0, disks));
    if (mount->type != "xfs") return OkStatus();
    for (const std::string& device : XfsDevices(mount->options)) {
      ASSIGN_OR_RETURN(const std::string folder, FolderOfName(device));
      RETURN_IF_ERROR(CollectDisks(folder, 0, disks));
    }
    return OkStatus();
  }
  bool found = false;
  size_t begin = 0;
  while (begin < mount->source.size()) {
    const size_t end = std::min(mount->source.find(':', begin), mount->source.size());
    const std::string source = mount->source.substr(begin, end - begin);
    begin = end + 1;
    if (!StartsWith(source, "/dev/")) continue;
    ASSIGN_OR_RETURN(const std::string folder, FolderOfName(source));
    RETURN_IF_ERROR(CollectDisks(folder, 0, disks));
    found = true;
    if (mount->type != "btrfs") continue;
    for (const std::string& member : BtrfsMembers(root_ + "/sys/fs/btrfs", folder)) {
      RETURN_IF_ERROR(CollectDisks(member, 0, disks));
    }
  }
  if (found) return OkStatus();
  return Status(StatusCode::kFailedPrecondition, path + " lies on " + mount->type + " (" +
                                                     mount->source +
                                                     "), not on a block device of this machine");
}

Result<std::vector<Disk>> BlockDevices::UnderMount(const std::string& path) const {
  std::vector<Disk> disks;
  RETURN_IF_ERROR(CollectMount(path, 0, &disks));
  return disks;
}

Result<std::vector<Disk>> BlockDevices::AllPhysical() const {
  std::vector<std::string> folders;
  std::error_code error;
  for (fs::directory_iterator it(root_ + "/sys/block", error), end; !error && it != end;
       it.increment(error)) {
    std::error_code unresolved;
    const fs::path folder = fs::canonical(it->path(), unresolved);
    if (!unresolved && IsPhysical(folder.string(), it->path().filename().string())) {
      folders.push_back(folder.string());
    }
  }
  std::sort(folders.begin(), folders.end(), [](const std::string& a, const std::string& b) {
    return fs::path(a).filename() < fs::path(b).filename();
  });
  std::vector<Disk> disks;
  for (const std::string& folder : folders) {
    ASSIGN_OR_RETURN(Disk disk, Describe(folder));
    AddOnce(std::move(disk), &disks);
  }
  if (disks.empty()) {
    return Status(StatusCode::kNotFound,
                  "this machine shows no physical disk\n  try:  --device NAME; lsblk lists names");
  }
  return disks;
}

std::vector<uint32_t> BlockDevices::PartitionsOf(const Disk& disk) const {
  std::vector<uint32_t> devs;
  std::error_code error;
  const std::string folder = root_ + "/sys/class/block/" + disk.description.name();
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code missing;
    if (!fs::exists(it->path() / "partition", missing)) continue;
    const std::optional<std::string> number = Text((it->path() / "dev").string());
    if (const auto dev = number ? DevOf(*number) : std::nullopt) devs.push_back(*dev);
  }
  std::sort(devs.begin(), devs.end());
  return devs;
}

bool BlockDevices::IsPresent(const Disk& disk) const {
  const std::optional<std::string> number =
      Text(root_ + "/sys/class/block/" + disk.description.name() + "/dev");
  if (!number || DevOf(*number) != disk.dev) return false;
  const auto sequence = Number(root_ + "/sys/class/block/" + disk.description.name() + "/diskseq");
  return !sequence || !disk.sequence || *sequence == *disk.sequence;
}

std::string BlockDevices::Census() const {
  std::vector<std::string> lines;
  std::error_code error;
  for (fs::directory_iterator it(root_ + "/sys/block", error), end; !error && it != end;
       it.increment(error)) {
    lines.push_back(it->path().filename().string() + " " +
                    Text((it->path() / "diskseq").string()).value_or("") + " " +
                    Text((it->path() / "size").string()).value_or("") + "\n");
  }
  std::sort(lines.begin(), lines.end());
  std::string census;
  for (const std::string& line : lines) census += line;
  const Result<std::string> mounts = ReadFile(root_ + "/proc/self/mountinfo");
  return mounts.ok() ? census + *mounts : census;
}

bool IsNvmeMultipath(const Disk& disk) {
  // That of one path alone has requests.
  return disk.bio_based.value_or(false) && StartsWith(disk.description.name(), "nvme");
}

}  // namespace blktape
