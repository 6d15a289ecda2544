#include "replay/target/target_guard.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "host/mount_table.h"
#include "replay/target/shared_sectors.h"

namespace blktape {
namespace {

constexpr char kClassBlock[] = "/sys/class/block/";
constexpr char kScratchHint[] =
    "\n  try:  a scratch device with --overwrite, or replay --skip-writes";

// A block device that shares the target's sectors.
struct Node {
  std::string name;
  std::optional<DeviceNumber> number;
  // Its name in messages: "" for the target itself, "its partition sda1", "dm-0 (home) on it",
  // "loop0 below it".
  std::string relation;
  bool holder = false;  // stacked on the target: this alone is a reason to refuse
};

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A mounted file system or swap area, or something that looks like one.
struct Mount {
  std::optional<DeviceNumber> number;
  std::string point;
  std::string source;
  std::string where;  // "" in our mount namespace, else " in the mount namespace of process 12
                      // (bash)"
};

std::vector<std::string> Words(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::vector<Mount> MountsOf(const std::string& mountinfo, const std::string& where) {
  std::vector<Mount> mounts;
  for (const MountEntry& entry : ParseMounts(mountinfo)) {
    mounts.push_back(
        {ParseDeviceNumber(entry.device_number), entry.mount_point, entry.source, where});
  }
  return mounts;
}

// The paths in /proc/swaps, whose first line is a header.
std::vector<std::string> ParseSwaps(const std::string& swaps) {
  std::vector<std::string> paths;
  std::istringstream lines(swaps);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    const std::vector<std::string> words = Words(line);
    if (!words.empty()) paths.push_back(UnescapeOctal(words[0]));
  }
  return paths;
}

Status Refuse(const std::string& message, const std::string& hint = kScratchHint) {
  return Status(StatusCode::kFailedPrecondition, message + hint);
}

// The two lowest bits of an open file's flags are its access mode (fs/open.h).
constexpr int kAccessMode = 3;

class Guard {
 public:
  Guard(const SystemView& system, const std::string& path) : system_(system), path_(path) {}

  Status Load() {
    Result<std::string> own = system_.Read("/proc/self/mountinfo");
    if (!own.ok()) {
      return Refuse(path_ + ": cannot tell whether it is mounted: " + own.status().message(),
                    "\n  try:  mount -t proc proc /proc");
    }
    mounts_ = MountsOf(*own, "");
    AddMountsElsewhere(*own);
    // This file is absent in a kernel without swap.
    if (const Result<std::string> swaps = system_.Read("/proc/swaps"); swaps.ok()) {
      swaps_ = ParseSwaps(*swaps);
    }
    for (const std::string& name : system_.List("/sys/class/block")) {
      if (const auto backing = system_.LoopBacking(name)) loops_.push_back({name, *backing});
    }
    return OkStatus();
  }

  Status CheckFile(const FileIdentity& identity, const std::string& as,
                   const std::string& except_loop = "") const {
    for (const Loop& loop : loops_) {
      if (loop.name == except_loop || !loop.backing.SameAs(identity)) continue;
      return Refuse(as + " backs /dev/" + loop.name + "; replaying writes would corrupt it",
                    "\n  try:  losetup -d /dev/" + loop.name + ", if it is not needed");
    }
    for (const std::string& swap : swaps_) {
      const auto other = system_.Identify(swap);
      if (other && other->SameAs(identity)) {
        return Refuse(as + " is swap; replaying writes would corrupt memory");
      }
    }
    if (const std::optional<std::string> writer =
            WriterOf([&identity](const FileIdentity& open) { return open.SameAs(identity); })) {
      return RefuseOpen(as + " is", *writer);
    }
    return OkStatus();
  }

  Status CheckKept(const FileIdentity& identity, const std::string& as,
                   const std::vector<std::string>& keep_paths) const {
    for (const std::string& keep : keep_paths) {
      const auto other = system_.Identify(keep);
      if (other && other->SameAs(identity)) {
        return Refuse(as + " is " + keep + " itself, which this run needs",
                      "\n  try:  another target");
      }
    }
    return OkStatus();
  }

  Status CheckBlock(DeviceNumber number, const std::vector<std::string>& keep_paths) {
    const std::optional<std::string> name = KernelName(system_, number);
    if (!name) {
      return Refuse(path_ + ": /sys does not show it, so nobody can tell whether it is in use",
                    "\n  try:  mount -t sysfs sysfs /sys");
    }
    CollectNodes(*name, number);
    std::vector<std::string> below;
    if (way_down_.empty()) below = AddSharers(*name);
    // The most telling reason first: a mount, then swap, then a holder.
    for (const Node& node : nodes_) RETURN_IF_ERROR(CheckMounts(node));
    for (const Node& node : nodes_) RETURN_IF_ERROR(CheckSwaps(node));
    for (const Node& node : nodes_) {
      if (node.holder) return RefuseHeld(node);
    }
    for (const Node& node : nodes_) RETURN_IF_ERROR(CheckExported(node));
    for (const Node& node : nodes_) {
      // Some programs write to disks without claiming them: virtual machines, databases.
      if (const std::optional<std::string> writer = WriterOf([&node](const FileIdentity& open) {
            return open.block && open.block == node.number;
          })) {
        return RefuseOpen(Subject(node), *writer);
      }
    }
    below.push_back(DiskOfPartition(system_, *name).value_or(*name));
    for (const Loop& loop : loops_) {
      if (!Contains(below, loop.name)) continue;
      // Writes to a loop device go to the device below it, which the loop device does not claim.
      way_down_.push_back(loop.name);
      if (loop.backing.block) {
        RETURN_IF_ERROR(CheckBlock(*loop.backing.block, keep_paths));
        continue;
      }
      const std::string as = path_ + ": its backing file";
      RETURN_IF_ERROR(CheckFile(loop.backing, as, loop.name));
      RETURN_IF_ERROR(CheckKept(loop.backing, as, keep_paths));
    }
    return OkStatus();
  }

 private:
  // Containers and sandboxes have their own mounts, and keep copies of ours after an unmount.
  void AddMountsElsewhere(const std::string& own) {
    std::set<std::string> seen = {own};
    for (const std::string& pid : system_.List("/proc")) {
      if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
      const Result<std::string> table = system_.Read("/proc/" + pid + "/mountinfo");
      if (!table.ok() || !seen.insert(*table).second) continue;
      const Result<std::string> name = system_.Read("/proc/" + pid + "/comm");
      const std::string where = " in the mount namespace of process " + pid +
                                (name.ok() ? " (" + *name + ")" : std::string());
      for (Mount& mount : MountsOf(*table, where)) mounts_.push_back(std::move(mount));
    }
  }

  struct Loop {
    std::string name;
    FileIdentity backing;
  };

  std::optional<DeviceNumber> NumberOf(const std::string& name) const {
    const Result<std::string> dev = system_.Read(kClassBlock + name + "/dev");
    return dev.ok() ? ParseDeviceNumber(*dev) : std::nullopt;
  }

  // "dm-0 (vg-home)".
  std::string Title(const std::string& name) const {
    const Result<std::string> dm = system_.Read(kClassBlock + name + "/dm/name");
    return dm.ok() ? name + " (" + *dm + ")" : name;
  }

  void Add(Node node) {
    const auto known = [&](const Node& other) { return other.name == node.name; };
    if (std::none_of(nodes_.begin(), nodes_.end(), known)) nodes_.push_back(std::move(node));
  }

  void CollectNodes(const std::string& name, DeviceNumber number) {
    const bool below = !way_down_.empty();
    nodes_ = {{name, number, below ? name + " below it" : "", false}};
    if (const auto disk = DiskOfPartition(system_, name)) {
      Add({*disk, NumberOf(*disk), below ? "the disk " + *disk + " below it" : "its disk " + *disk,
           false});
      AddStacked(1);
      AddStacked(0);
      return;
    }
    AddPartitions(0, below ? "partition of the device below it, " : "its partition ");
    const size_t own = nodes_.size();
    for (size_t i = 0; i < own; ++i) AddStacked(i);
  }

  // Checks devices that use sectors of the target without being stacked on it, and therefore
  // without claiming it: the devices below the target, other device-mapper tables over those, and
  // the same drive by another path. Returns the devices below the target.
  std::vector<std::string> AddSharers(const std::string& name) {
    const SectorMap map(system_);
    const std::vector<std::string> below = map.Below(name);
    const std::vector<Extent> written = map.WrittenBy(name);
    const size_t own = nodes_.size();
    const auto is_own = [&](const std::string& other) {
      return std::any_of(nodes_.begin(), nodes_.begin() + static_cast<ptrdiff_t>(own),
                         [&other](const Node& node) { return node.name == other; });
    };
    const std::vector<std::string> later = UnderLoops(name);
    std::vector<std::string> others;
    for (const std::string& other : system_.List("/sys/class/block")) {
      const std::string disk = DiskOfPartition(system_, other).value_or(other);
      if (is_own(other) || Contains(later, other) || Contains(later, disk)) continue;
      if (Contains(below, other)) {
        Add({other, NumberOf(other), Title(other) + " below it", false});
        continue;
      }
      if (!Overlap(written, map.NeededBy(other))) continue;
      const std::optional<std::string> id = map.DriveId(disk);
      if (!id || Contains(below, disk) || is_own(disk)) {
        others.push_back(other);
        continue;
      }
      Add({other, NumberOf(other), other + ", the same drive by another path (" + *id + "),",
           false});
      for (const std::string& above : system_.List(kClassBlock + other + "/holders")) {
        if (!is_own(above) && !Contains(below, above)) {
          Add({above, NumberOf(above), Title(above) + " on the same drive by another path", true});
        }
      }
    }
    for (const std::string& other : others) {
      Add({other, NumberOf(other), Title(other) + " on the same sectors", false});
    }
    return below;
  }

  // The devices below a loop device and their disks; CheckBlock visits these by itself.
  std::vector<std::string> UnderLoops(const std::string& name) const {
    std::vector<std::string> under = {DiskOfPartition(system_, name).value_or(name)};
    for (size_t i = 0; i < under.size(); ++i) {
      for (const Loop& loop : loops_) {
        if (loop.name != under[i] || !loop.backing.block) continue;
        const std::optional<std::string> backing = KernelName(system_, *loop.backing.block);
        if (!backing || Contains(under, *backing)) continue;
        under.push_back(*backing);
        if (const auto disk = DiskOfPartition(system_, *backing)) under.push_back(*disk);
      }
    }
    under.erase(under.begin());
    return under;
  }

  void AddPartitions(size_t index, const std::string& relation) {
    const Node node = nodes_[index];
    for (const std::string& part : system_.List(kClassBlock + node.name)) {
      if (!system_.Read(kClassBlock + node.name + "/" + part + "/partition").ok()) continue;
      Add({part, NumberOf(part), relation + part, node.holder});
    }
  }

  // All devices above nodes_[index], at any level.
  void AddStacked(size_t index) {
    std::vector<size_t> unseen = {index};
    while (!unseen.empty()) {
      const Node node = nodes_[unseen.back()];
      unseen.pop_back();
      std::vector<std::string> above = system_.List(kClassBlock + node.name + "/holders");
      for (const Loop& loop : loops_) {
        if (loop.backing.block && loop.backing.block == node.number) above.push_back(loop.name);
      }
      for (const std::string& name : above) {
        if (Contains(way_down_, name)) continue;
        const size_t before = nodes_.size();
        Add({name, NumberOf(name), Title(name) + " on it", true});
        if (nodes_.size() == before) continue;
        AddPartitions(before, "partition of a device on it, ");
        for (size_t i = before; i < nodes_.size(); ++i) unseen.push_back(i);
      }
    }
  }

  bool IsNode(const std::string& path, const Node& node) const {
    const auto identity = system_.Identify(path);
    return identity && identity->block && identity->block == node.number;
  }

  // "/dev/sdb is", "/dev/sdb: its partition sdb1 is".
  std::string Subject(const Node& node) const {
    return node.relation.empty() ? path_ + " is" : path_ + ": " + node.relation + " is";
  }

  Status CheckMounts(const Node& node) const {
    for (const Mount& mount : mounts_) {
      const bool by_number = mount.number && mount.number == node.number;
      // btrfs and similar file systems have a device number that belongs to no device; their source
      // names one of the disks.
      const bool by_source = mount.source.starts_with("/dev/") && IsNode(mount.source, node);
      if (!by_number && !by_source) continue;
      return Refuse(Subject(node) + " mounted on " + mount.point + mount.where +
                    "; replaying writes would destroy it");
    }
    // mountinfo names only one disk of a btrfs with several; sysfs lists all of them while it is
    // mounted.
    for (const std::string& volume : system_.List("/sys/fs/btrfs")) {
      const auto disks = system_.List("/sys/fs/btrfs/" + volume + "/devices");
      if (std::find(disks.begin(), disks.end(), node.name) == disks.end()) continue;
      return Refuse(Subject(node) + " part of the mounted btrfs " + volume +
                    "; replaying writes would destroy it");
    }
    return OkStatus();
  }

  // "process 12 (qemu)" if another process has a file open for writing for which `is_it` is true.
  // Processes that this user may not inspect are unknown.
  template <typename IsIt>
  std::optional<std::string> WriterOf(IsIt is_it) const {
    const std::string self = std::to_string(getpid());
    for (const std::string& pid : system_.List("/proc")) {
      if (pid == self || pid.find_first_not_of("0123456789") != std::string::npos) continue;
      const std::string process = "/proc/" + pid;
      for (const std::string& fd : system_.List(process + "/fd")) {
        const std::optional<FileIdentity> open = system_.Identify(process + "/fd/" + fd);
        if (!open || !is_it(*open) || !MayWrite(process + "/fdinfo/" + fd)) continue;
        const Result<std::string> name = system_.Read(process + "/comm");
        return "process " + pid + (name.ok() ? " (" + *name + ")" : std::string());
      }
    }
    return std::nullopt;
  }

  // proc(5): "flags:" and the flags of open(2) in octal.
  bool MayWrite(const std::string& fdinfo) const {
    const Result<std::string> text = system_.Read(fdinfo);
    if (!text.ok()) return false;  // closed in the meantime
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
      const std::vector<std::string> words = Words(line);
      if (words.size() != 2 || words[0] != "flags:") continue;
      return (std::strtol(words[1].c_str(), nullptr, 8) & kAccessMode) != 0;
    }
    return true;
  }

  Status RefuseOpen(const std::string& subject, const std::string& writer) const {
    return Refuse(subject + " open for writing in " + writer +
                      "; it and a replay would overwrite one another",
                  std::string(kScratchHint) + ";\n        end that process, if it is not needed");
  }

  // The kernel's NVMe target opens its disks without claiming them (Documentation/nvme, configfs).
  Status CheckExported(const Node& node) const {
    const std::string subsystems = "/sys/kernel/config/nvmet/subsystems";
    for (const std::string& subsystem : system_.List(subsystems)) {
      const std::string spaces = subsystems + "/" + subsystem + "/namespaces";
      for (const std::string& space : system_.List(spaces)) {
        const Result<std::string> enabled = system_.Read(spaces + "/" + space + "/enable");
        const Result<std::string> path = system_.Read(spaces + "/" + space + "/device_path");
        if (!enabled.ok() || *enabled != "1" || !path.ok() || !IsNode(*path, node)) continue;
        return Refuse(Subject(node) + " exported by the NVMe target " + subsystem +
                      "; replaying writes would destroy it");
      }
    }
    return OkStatus();
  }

  Status CheckSwaps(const Node& node) const {
    for (const std::string& swap : swaps_) {
      if (!IsNode(swap, node)) continue;
      return Refuse(
          Subject(node) + " swap; replaying writes would corrupt memory",
          std::string(kScratchHint) + ";\n        swapoff " + swap + ", if it is not needed");
    }
    return OkStatus();
  }

  Status RefuseHeld(const Node& node) const {
    const std::string& name = node.name;
    std::string owner = "another device";
    std::string release;
    const Result<std::string> uuid = system_.Read(kClassBlock + name + "/dm/uuid");
    const Result<std::string> dm = system_.Read(kClassBlock + name + "/dm/name");
    if (dm.ok()) {
      const std::string kind = uuid.ok() ? *uuid : "";
      if (kind.starts_with("LVM-")) {
        owner = "an LVM volume";
        release = "vgchange -an, for its volume group";
      } else if (kind.starts_with("CRYPT-")) {
        owner = "an encrypted volume";
        release = "cryptsetup close " + *dm;
      } else if (kind.starts_with("mpath-")) {
        owner = "a multipath map";
        release = "/dev/mapper/" + *dm + " as the target";
      } else {
        owner = "a device-mapper device";
        release = "dmsetup remove " + *dm;
      }
    } else if (const auto level = system_.Read(kClassBlock + name + "/md/level"); level.ok()) {
      owner = "an array (" + *level + ")";
      release = "mdadm --stop /dev/" + name;
    } else if (system_.Read(kClassBlock + name + "/loop/backing_file").ok()) {
      owner = "a loop device";
      release = "losetup -d /dev/" + name;
    }
    std::string hint = kScratchHint;
    if (!release.empty()) hint += ";\n        " + release + ", if it is not needed";
    return Refuse(Subject(nodes_[0]) + " held by " + Title(name) + ", " + owner +
                      "; replaying writes would destroy it",
                  hint);
  }

  const SystemView& system_;
  const std::string& path_;
  std::vector<Mount> mounts_;
  std::vector<std::string> swaps_;
  std::vector<Loop> loops_;
  std::vector<Node> nodes_;
  // The loop devices between the target and the device that nodes_ describe; empty: nodes_ describe
  // the target.
  std::vector<std::string> way_down_;
};

}  // namespace

Status CheckNotInUse(const SystemView& system, const std::string& path,
                     const FileIdentity& identity, const std::vector<std::string>& keep_paths) {
  Guard guard(system, path);
  RETURN_IF_ERROR(guard.Load());
  RETURN_IF_ERROR(guard.CheckKept(identity, path, keep_paths));
  if (identity.block) return guard.CheckBlock(*identity.block, keep_paths);
  return guard.CheckFile(identity, path);
}

}  // namespace blktape
