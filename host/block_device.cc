#include "host/block_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "base/kernel_dev.h"
#include "host/mount_table.h"
#include "host/sysfs_device.h"

namespace blktape {
namespace {

namespace fs = std::filesystem;

// A bound, so that a damaged or faked sysfs cannot cause endless recursion. Real stacks (dm over md
// over dm over partitions) have about four levels.
constexpr int kMaxStackDepth = 16;
// Linux does not mount an overlay on an overlay on an overlay; what looks like one consists of
// folders of another mount namespace.
constexpr int kMaxOverlayDepth = 2;

uint32_t DevOf(const DeviceNumber& number) { return KernelDev(number.major, number.minor); }

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

void AddOnce(Disk device, std::vector<Disk>* disks) {
  for (const Disk& one : *disks) {
    if (one.dev == device.dev) return;
  }
  disks->push_back(std::move(device));
}

}  // namespace

std::optional<std::string> BlockDevices::Text(const std::string& path) const {
  Result<std::string> text = system_->Read(path);
  if (!text.ok() || text->empty()) return std::nullopt;
  return *std::move(text);
}

std::optional<uint64_t> BlockDevices::Number(const std::string& path) const {
  const std::optional<std::string> text = Text(path);
  if (!text) return std::nullopt;
  uint64_t number = 0;
  const char* end = text->data() + text->size();
  const auto parsed = std::from_chars(text->data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

bool BlockDevices::IsPhysical(const std::string& folder, const std::string& name) const {
  if (StartsWith(name, "sr") || StartsWith(name, "fd")) return false;
  if (folder.find("/devices/virtual/block/") != std::string::npos) return false;
  return Number(folder + "/size").value_or(0) > 0 && Number(folder + "/hidden").value_or(0) == 0;
}

Result<Disk> BlockDevices::Describe(const std::string& folder) const {
  Disk disk;
  ASSIGN_OR_RETURN(disk.description, DescribeDisk(folder, *system_));
  // In brackets, as <sys/sysmacros.h> has macros of these names.
  disk.dev = KernelDev((disk.description.major)(), (disk.description.minor)());
  // A device with requests has hardware queues, even if only a simulated one.
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
  Result<std::string> folder = system_->Resolve("/sys/dev/block/" + number);
  if (folder.ok()) return folder;
  return Status(StatusCode::kNotFound, "there is no block device " + number + " in /sys");
}

Result<std::string> BlockDevices::FolderOfName(const std::string& device) const {
  if (device.find('/') == std::string::npos && !device.empty()) {
    // sysfs writes a '/' of a device's name as '!'.
    Result<std::string> folder = system_->Resolve("/sys/class/block/" + device);
    if (folder.ok()) return folder;
    return Status(StatusCode::kNotFound,
                  "there is no block device \"" + device + "\"\n  try:  lsblk");
  }
  const Status leads = system_->Resolve(device).status();
  if (!leads.ok()) return Status(leads.code(), leads.message() + "\n  try:  lsblk");
  const std::optional<FileIdentity> identity = system_->Identify(device);
  if (!identity || !identity->block) {
    return Status(StatusCode::kInvalidArgument, device + " is no block device\n  try:  --mount " +
                                                    device + " to record the disks it lies on");
  }
  return FolderOfNumber(fmt::format("{}:{}", identity->block->major, identity->block->minor));
}

Status BlockDevices::CollectDisks(const std::string& folder, int depth,
                                  std::vector<Disk>* disks) const {
  if (depth > kMaxStackDepth) {
    return Status(StatusCode::kFailedPrecondition, folder + ": devices stacked without end");
  }
  if (Text(folder + "/partition")) {
    return CollectDisks(fs::path(folder).parent_path().string(), depth + 1, disks);
  }
  std::vector<std::string> slaves;
  for (const std::string& name : system_->List(folder + "/slaves")) {
    const Result<std::string> slave = system_->Resolve(folder + "/slaves/" + name);
    if (slave.ok()) slaves.push_back(*slave);
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
    if (depth == kMaxOverlayDepth || layer[0] != '/' || !system_->Resolve(layer).ok()) {
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
  ASSIGN_OR_RETURN(const std::string real, system_->Resolve(path));
  ASSIGN_OR_RETURN(const std::string table, system_->Read("/proc/self/mountinfo"));
  const std::optional<MountEntry> mount = FindMount(table, real);
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
    for (const std::string& member : BtrfsMembers(*system_, folder)) {
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
  for (const std::string& name : system_->List("/sys/block")) {
    const Result<std::string> folder = system_->Resolve("/sys/block/" + name);
    if (folder.ok() && IsPhysical(*folder, name)) folders.push_back(*folder);
  }
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

std::vector<Layer> BlockDevices::LayersOn(const std::vector<Disk>& disks) const {
  std::vector<Layer> layers;
  for (const std::string& name : system_->List("/sys/block")) {
    const std::string folder = "/sys/block/" + name;
    if (system_->List(folder + "/slaves").empty()) continue;
    const auto number = ParseDeviceNumber(Text(folder + "/dev").value_or(""));
    const Result<std::vector<Disk>> below = Under(name);
    if (!number || !below.ok()) continue;
    const bool any = std::ranges::any_of(*below, [&](const Disk& one) {
      return std::ranges::find(disks, one.dev, &Disk::dev) != disks.end();
    });
    if (any) layers.push_back({.dev = DevOf(*number), .one_disk = below->size() == 1});
  }
  std::ranges::sort(layers, {}, &Layer::dev);
  return layers;
}

std::vector<uint32_t> BlockDevices::PartitionsOf(const Disk& disk) const {
  std::vector<uint32_t> devs;
  const std::string folder = "/sys/class/block/" + disk.description.name() + "/";
  for (const std::string& name : system_->List(folder)) {
    if (!Text(folder + name + "/partition")) continue;
    const auto number = ParseDeviceNumber(Text(folder + name + "/dev").value_or(""));
    if (number) devs.push_back(DevOf(*number));
  }
  std::sort(devs.begin(), devs.end());
  return devs;
}

bool BlockDevices::IsPresent(const Disk& disk) const {
  const std::string folder = "/sys/class/block/" + disk.description.name();
  const auto number = ParseDeviceNumber(Text(folder + "/dev").value_or(""));
  if (!number || DevOf(*number) != disk.dev) return false;
  const std::optional<uint64_t> sequence = Number(folder + "/diskseq");
  return !sequence || !disk.sequence || *sequence == *disk.sequence;
}

bool BlockDevices::HasNumber(uint32_t dev) const {
  return system_->Resolve("/sys/dev/block/" + KernelDevText(dev)).ok();
}

std::string BlockDevices::Census() const {
  std::string census;
  for (const std::string& name : system_->List("/sys/block")) {
    const std::string folder = "/sys/block/" + name;
    census += name + " " + Text(folder + "/diskseq").value_or("") + " " +
              Text(folder + "/size").value_or("") + "\n";
  }
  const Result<std::string> mounts = system_->Read("/proc/self/mountinfo");
  return mounts.ok() ? census + *mounts : census;
}

bool IsNvmeMultipath(const Disk& disk) {
  // Only the disk of a single path has requests.
  return disk.bio_based.value_or(false) && StartsWith(disk.description.name(), "nvme");
}

}  // namespace blktape
