#include "replay/target/shared_sectors.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <sstream>
#include <utility>

#include "base/units.h"

namespace blktape {
namespace {

constexpr char kClassBlock[] = "/sys/class/block/";
constexpr uint64_t kWhole = std::numeric_limits<uint64_t>::max();
// The maximum depth of a stack of devices. Real stacks have a few levels; more means a cycle.
constexpr int kMaxDepth = 16;

std::optional<uint64_t> Number(const std::string& text) {
  uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

std::vector<std::string> Words(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// Whether an identifier is usable: cheap bridges report "0000000000000000" for every disk.
bool Tells(const std::string& id) {
  return std::count_if(id.begin(), id.end(), [](char c) { return c != '0' && c != ' '; }) >= 4;
}

}  // namespace

SectorMap::SectorMap(const SystemView& system) : system_(system) {
  const std::vector<std::string> all = system.List("/sys/class/block");
  for (const std::string& name : all) {
    const Result<std::string> dev = system.Read(kClassBlock + name + "/dev");
    if (!dev.ok()) continue;
    if (const auto number = ParseDeviceNumber(*dev)) names_[*number] = name;
    if (const auto disk = DiskOfPartition(system, name)) disk_of_[name] = *disk;
  }
  std::map<std::string, std::string> first;
  for (const std::string& name : all) {
    if (disk_of_.contains(name)) continue;
    const std::optional<std::string> id = DriveId(name);
    // Two disks with the same identifier but different sizes are different drives with a wrong
    // identifier.
    const Result<std::string> size = system.Read(kClassBlock + name + "/size");
    drive_of_[name] =
        id ? first.try_emplace(*id + " " + (size.ok() ? *size : ""), name).first->second : name;
  }
}

std::optional<std::string> SectorMap::DriveId(const std::string& disk) const {
  const std::string folder = kClassBlock + disk;
  // NVMe; SCSI and ATA (page 0x83 of the vital product data); virtio-blk has its serial number.
  for (const char* attribute : {"/wwid", "/device/wwid", "/nguid", "/eui", "/uuid"}) {
    const Result<std::string> text = system_.Read(folder + attribute);
    if (!text.ok()) continue;
    const std::string digits = text->substr(text->find('.') + 1);
    if (Tells(digits)) return *text;
  }
  std::string model;
  if (const auto text = system_.Read(folder + "/device/model"); text.ok()) model = *text;
  for (const char* attribute : {"/serial", "/device/serial", "/device/vpd_pg80"}) {
    const Result<std::string> text = system_.Read(folder + attribute);
    if (text.ok() && Tells(*text)) return "model " + model + " serial " + *text;
  }
  return std::nullopt;
}

void SectorMap::CollectBelow(const std::string& name, int depth,
                             std::vector<std::string>* names) const {
  if (depth > kMaxDepth) return;
  std::vector<std::string> below = system_.List(kClassBlock + name + "/slaves");
  if (const auto disk = disk_of_.find(name); disk != disk_of_.end()) below.push_back(disk->second);
  for (const std::string& one : below) {
    if (std::find(names->begin(), names->end(), one) != names->end()) continue;
    names->push_back(one);
    CollectBelow(one, depth + 1, names);
  }
}

std::vector<std::string> SectorMap::Below(const std::string& name) const {
  std::vector<std::string> names;
  CollectBelow(name, 0, &names);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<Extent> SectorMap::WrittenBy(const std::string& name) const {
  std::vector<Extent> extents;
  Collect(name, {0, kWhole}, /*needed=*/false, 0, &extents);
  return extents;
}

std::vector<Extent> SectorMap::NeededBy(const std::string& name) const {
  std::vector<Extent> extents;
  Collect(name, {0, kWhole}, /*needed=*/true, 0, &extents);
  return extents;
}

void SectorMap::Collect(const std::string& name, Range range, bool needed, int depth,
                        std::vector<Extent>* extents) const {
  const std::string folder = kClassBlock + name;
  if (depth <= kMaxDepth) {
    if (const auto disk = disk_of_.find(name); disk != disk_of_.end()) {
      const Result<std::string> start_text = system_.Read(folder + "/start");
      const Result<std::string> size_text = system_.Read(folder + "/size");
      const auto start = start_text.ok() ? Number(*start_text) : std::nullopt;
      const auto size = size_text.ok() ? Number(*size_text) : std::nullopt;
      if (start && size) {
        const Range on_disk{*start + std::min(range.begin, *size),
                            *start + std::min(range.end, *size)};
        return Collect(disk->second, on_disk, needed, depth + 1, extents);
      }
    }
    if (system_.Read(folder + "/dm/name").ok()) {
      const Result<std::string> table = system_.DeviceMapperTable(name);
      if (table.ok()) return CollectTable(*table, range, needed, depth + 1, extents);
      // LVM itself ensures that no sector belongs to two volumes.
      const Result<std::string> uuid = system_.Read(folder + "/dm/uuid");
      if (uuid.ok() && uuid->starts_with("LVM-")) {
        extents->push_back({"volume " + *uuid, range.begin, range.end});
        return;
      }
    }
    if (const auto backing = system_.LoopBacking(name); backing && backing->block) {
      const Result<std::string> text = system_.Read(folder + "/loop/offset");
      const uint64_t from = text.ok() ? Number(*text).value_or(0) / kSectorBytes : 0;
      const Range below{from + range.begin, range.end == kWhole ? kWhole : from + range.end};
      const auto device = names_.find(*backing->block);
      if (device != names_.end()) {
        return Collect(device->second, below, needed, depth + 1, extents);
      }
    }
    const std::vector<std::string> slaves = system_.List(folder + "/slaves");
    for (const std::string& slave : slaves) Collect(slave, {0, kWhole}, needed, depth + 1, extents);
    if (!slaves.empty()) return;
  }
  const auto drive = drive_of_.find(name);
  extents->push_back({drive == drive_of_.end() ? name : drive->second, range.begin, range.end});
}

void SectorMap::CollectDevice(const std::string& number, Range range, bool needed, int depth,
                              std::vector<Extent>* extents) const {
  const auto parsed = ParseDeviceNumber(number);
  const auto name = parsed ? names_.find(*parsed) : names_.end();
  if (name != names_.end()) Collect(name->second, range, needed, depth, extents);
}

// Lines as `dmsetup table` prints them: "START LENGTH TYPE ARGUMENT ..."
// (Documentation/admin-guide/device-mapper of the kernel).
void SectorMap::CollectTable(const std::string& table, Range range, bool needed, int depth,
                             std::vector<Extent>* extents) const {
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = Words(line);
    if (words.size() < 3) continue;
    const auto start = Number(words[0]);
    const auto length = Number(words[1]);
    if (!start || !length) continue;
    const Range part{std::max(range.begin, *start), std::min(range.end, *start + *length)};
    if (part.begin >= part.end) continue;
    const std::string& type = words[2];
    const std::vector<std::string> args(words.begin() + 3, words.end());
    // One device, starting at an offset.
    const auto along = [&](size_t device, size_t offset) {
      const auto from = args.size() > offset ? Number(args[offset]) : std::nullopt;
      const Range below{from.value_or(0) + (part.begin - *start),
                        from ? *from + (part.end - *start) : kWhole};
      if (args.size() > device) CollectDevice(args[device], below, needed, depth, extents);
    };
    if (type == "zero" || type == "error") {
      continue;
    } else if (type == "linear" || type == "flakey" || type == "dust") {
      along(0, 1);
    } else if (type == "delay") {
      along(0, 1);
      if (args.size() >= 5) along(3, 4);  // a separate device for writes
    } else if (type == "crypt") {
      along(3, 4);
    } else if (type == "snapshot" && args.size() >= 2) {
      // Only the exception store is written.
      CollectDevice(args[1], {0, kWhole}, needed, depth, extents);
      if (needed) CollectDevice(args[0], part, needed, depth, extents);
    } else if (type == "thin" && args.size() >= 2) {
      extents->push_back({"thin volume " + args[1] + " of " + args[0], part.begin, part.end});
    } else {
      // Of multipath paths and a snapshot's origin, the same sectors. Of members of stripes,
      // mirrors and all other targets, the whole device.
      const bool same = type == "multipath" || type == "snapshot-origin";
      for (const std::string& arg : args) {
        CollectDevice(arg, same ? part : Range{0, kWhole}, needed, depth, extents);
      }
    }
  }
}

bool Overlap(const std::vector<Extent>& a, const std::vector<Extent>& b) {
  return std::any_of(a.begin(), a.end(), [&b](const Extent& x) {
    return std::any_of(b.begin(), b.end(), [&x](const Extent& y) {
      return x.drive == y.drive && x.begin < y.end && y.begin < x.end;
    });
  });
}

}  // namespace blktape
