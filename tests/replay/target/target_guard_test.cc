#include "replay/target/target_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace blktape {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A machine of files and device nodes in memory.
class FakeSystem : public SystemView {
 public:
  FakeSystem() { files_["/proc/self/mountinfo"] = ""; }

  Result<std::string> Read(const std::string& path) const override {
    const auto found = files_.find(path);
    if (found == files_.end()) return Status(StatusCode::kNotFound, path + ": absent");
    return found->second;
  }
  std::vector<std::string> List(const std::string& folder) const override {
    std::set<std::string> names;
    const std::string prefix = folder + "/";
    for (auto it = files_.lower_bound(prefix); it != files_.end(); ++it) {
      if (!it->first.starts_with(prefix)) break;
      const std::string rest = it->first.substr(prefix.size());
      names.insert(rest.substr(0, rest.find('/')));
    }
    return {names.begin(), names.end()};
  }
  Result<std::string> Resolve(const std::string& path) const override {
    if (!Identify(path)) return Status(StatusCode::kNotFound, path + ": absent");
    return path;
  }
  std::optional<FileIdentity> Identify(const std::string& path) const override {
    const auto found = identities_.find(path);
    if (found == identities_.end()) return std::nullopt;
    return found->second;
  }
  std::optional<FileIdentity> LoopBacking(const std::string& name) const override {
    const Result<std::string> path = Read("/sys/class/block/" + name + "/loop/backing_file");
    return path.ok() ? Identify(*path) : std::nullopt;
  }

  Result<std::string> DeviceMapperTable(const std::string& name) const override {
    return Read("table of " + name);
  }

  // A device-mapper device by its table.
  void Mapper(const std::string& name, uint32_t minor, const std::string& title,
              const std::string& below, const std::string& table) {
    Disk(name, 254, minor);
    files_["/sys/class/block/" + name + "/dm/name"] = title;
    files_["/sys/class/block/" + name + "/slaves/" + below] = "";
    files_["table of " + name] = table;
    Holder(below, name);
  }
  void Disk(const std::string& name, uint32_t major, uint32_t minor) {
    files_["/sys/class/block/" + name + "/dev"] =
        std::to_string(major) + ":" + std::to_string(minor);
    identities_["/dev/" + name] = {.inode = 1000 + minor, .block = DeviceNumber{major, minor}};
  }
  void Partition(const std::string& disk, const std::string& name, uint32_t major, uint32_t minor) {
    Disk(name, major, minor);
    files_["/sys/class/block/" + name + "/partition"] = "1";
    files_["/sys/class/block/" + disk + "/" + name + "/partition"] = "1";
  }
  void Holder(const std::string& below, const std::string& above) {
    files_["/sys/class/block/" + below + "/holders/" + above] = "";
  }
  void Loop(const std::string& name, uint32_t minor, const std::string& backing) {
    Disk(name, 7, minor);
    files_["/sys/class/block/" + name + "/loop/backing_file"] = backing;
  }
  void File(const std::string& path, uint64_t inode) {
    identities_[path] = {.device = 77, .inode = inode, .regular = true};
  }
  void Mount(const std::string& number, const std::string& point, const std::string& type,
             const std::string& source) {
    files_["/proc/self/mountinfo"] += "36 35 " + number + " / " + point +
                                      " rw,noatime shared:1 - " + type + " " + source + " rw\n";
  }
  void Swap(const std::string& path) {
    files_["/proc/swaps"] = "Filename Type Size Used Priority\n" + path + " partition 1 0 -2\n";
  }
  void Identity(const std::string& path, const FileIdentity& identity) {
    identities_[path] = identity;
  }
  void Put(const std::string& path, const std::string& text) { files_[path] = text; }
  void Remove(const std::string& path) { files_.erase(path); }

  Status Check(const std::string& path, const std::vector<std::string>& keep_paths = {}) const {
    return CheckNotInUse(*this, path, identities_.at(path), keep_paths);
  }

 private:
  std::map<std::string, std::string> files_;
  std::map<std::string, FileIdentity> identities_;
};

class TargetGuardTest : public testing::Test {
 protected:
  void SetUp() override {
    system_.Disk("sda", 8, 0);
    system_.Partition("sda", "sda1", 8, 1);
    system_.Partition("sda", "sda2", 8, 2);
    system_.Disk("sdb", 8, 16);
    system_.Mount("0:22", "/proc", "proc", "proc");
  }
  void ExpectRefused(const std::string& path, const std::string& reason,
                     const std::vector<std::string>& keep_paths = {}) {
    const Status status = system_.Check(path, keep_paths);
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), HasSubstr(reason));
    EXPECT_THAT(status.message(), HasSubstr("\n  try:  "));
  }
  FakeSystem system_;
};

TEST_F(TargetGuardTest, ADiskNobodyUsesIsFree) {
  system_.Mount("8:16", "/data", "ext4", "/dev/sdb");
  EXPECT_TRUE(system_.Check("/dev/sda").ok());
  EXPECT_TRUE(system_.Check("/dev/sda1").ok());
}

// QEMU on a disk, ASM: they write without a claim on it.
TEST_F(TargetGuardTest, ADiskOrPartitionOpenForWritingElsewhereIsRefused) {
  system_.Put("/proc/4000012/comm", "qemu");
  system_.Put("/proc/4000012/fd/7", "");
  system_.Put("/proc/4000012/fdinfo/7", "pos:\t0\nflags:\t0100002\nmnt_id:\t15");
  system_.Identity("/proc/4000012/fd/7", {.inode = 5, .block = DeviceNumber{8, 2}});
  ExpectRefused("/dev/sda2", "/dev/sda2 is open for writing in process 4000012 (qemu)");
  ExpectRefused("/dev/sda", "/dev/sda: its partition sda2 is open for writing in process 4000012");
  EXPECT_TRUE(system_.Check("/dev/sda1").ok());
  EXPECT_TRUE(system_.Check("/dev/sdb").ok());
  // A reader, as udev and smartd are, is in nobody's way.
  system_.Put("/proc/4000012/fdinfo/7", "pos:\t0\nflags:\t0100000\nmnt_id:\t15");
  EXPECT_TRUE(system_.Check("/dev/sda").ok());
}

TEST_F(TargetGuardTest, AFileOpenForWritingElsewhereIsRefusedByWhateverName) {
  system_.File("/data/disk.img", 41);
  system_.File("/proc/4000012/fd/3", 41);
  system_.Put("/proc/4000012/fd/3", "");
  system_.Put("/proc/4000012/fdinfo/3", "pos:\t0\nflags:\t0100001");
  ExpectRefused("/data/disk.img", "/data/disk.img is open for writing in process 4000012");
}

TEST_F(TargetGuardTest, ADiskThatTheNvmeTargetExportsIsRefused) {
  const std::string space = "/sys/kernel/config/nvmet/subsystems/shelf/namespaces/1/";
  system_.Put(space + "enable", "0");
  system_.Put(space + "device_path", "/dev/sdb");
  EXPECT_TRUE(system_.Check("/dev/sdb").ok());
  system_.Put(space + "enable", "1");
  ExpectRefused("/dev/sdb", "/dev/sdb is exported by the NVMe target shelf");
}

TEST_F(TargetGuardTest, AMountedDiskIsRefusedWithTheReasonAndTheWayOut) {
  system_.Mount("8:16", "/data", "ext4", "/dev/sdb");
  EXPECT_EQ(system_.Check("/dev/sdb").message(),
            "/dev/sdb is mounted on /data; replaying writes would destroy it\n"
            "  try:  a scratch device with --overwrite, or replay --skip-writes");
}

TEST_F(TargetGuardTest, AnyNodeOfAMountedDiskIsRefused) {
  system_.Mount("8:16", "/data", "ext4", "/dev/sdb");
  const FileIdentity by_id{.inode = 5, .block = DeviceNumber{8, 16}};
  const Status status = CheckNotInUse(system_, "/dev/disk/by-id/ata-X", by_id, {});
  EXPECT_THAT(status.message(), StartsWith("/dev/disk/by-id/ata-X is mounted on /data"));
}

TEST_F(TargetGuardTest, ADiskWithAMountedPartitionIsRefused) {
  system_.Mount("8:2", "/home", "ext4", "/dev/sda2");
  ExpectRefused("/dev/sda", "/dev/sda: its partition sda2 is mounted on /home");
  EXPECT_TRUE(system_.Check("/dev/sda1").ok());
}

TEST_F(TargetGuardTest, APartitionOfAMountedDiskIsRefused) {
  system_.Mount("8:0", "/odd", "ext4", "/dev/sda");
  ExpectRefused("/dev/sda1", "/dev/sda1: its disk sda is mounted on /odd");
}

TEST_F(TargetGuardTest, ABlankInAMountPointIsShownAsABlank) {
  system_.Mount("8:16", "/media/My\\040Disk", "vfat", "/dev/sdb");
  ExpectRefused("/dev/sdb", "mounted on /media/My Disk;");
}

TEST_F(TargetGuardTest, AMountInAnotherNamespaceCounts) {
  system_.Put("/proc/4711/mountinfo", "36 35 8:16 / /data rw - ext4 /dev/sdb rw\n");
  system_.Put("/proc/4711/comm", "dockerd");
  ExpectRefused("/dev/sdb",
                "/dev/sdb is mounted on /data in the mount namespace of process 4711 (dockerd);");
}

TEST_F(TargetGuardTest, ABtrfsHasANumberOfItsOwnAndIsFoundByItsSource) {
  system_.Mount("0:45", "/pool", "btrfs", "/dev/sdb");
  ExpectRefused("/dev/sdb", "/dev/sdb is mounted on /pool");
}

TEST_F(TargetGuardTest, TheSecondDiskOfABtrfsIsRefusedThoughMountinfoNamesOnlyTheFirst) {
  system_.Mount("0:45", "/pool", "btrfs", "/dev/sdb");
  system_.Put("/sys/fs/btrfs/1234-ab/devices/sda1", "");
  ExpectRefused("/dev/sda", "its partition sda1 is part of the mounted btrfs 1234-ab");
}

TEST_F(TargetGuardTest, SwapIsRefused) {
  system_.Swap("/dev/sda2");
  ExpectRefused("/dev/sda2", "/dev/sda2 is swap");
  ExpectRefused("/dev/sda", "/dev/sda: its partition sda2 is swap");
  EXPECT_THAT(system_.Check("/dev/sda").message(), HasSubstr("swapoff /dev/sda2"));
}

TEST_F(TargetGuardTest, AnLvmMemberIsRefusedThoughNothingIsMounted) {
  system_.Disk("dm-0", 254, 0);
  system_.Put("/sys/class/block/dm-0/dm/name", "vg-home");
  system_.Put("/sys/class/block/dm-0/dm/uuid", "LVM-a1b2");
  system_.Holder("sda1", "dm-0");
  ExpectRefused("/dev/sda", "/dev/sda is held by dm-0 (vg-home), an LVM volume");
  ExpectRefused("/dev/sda1", "held by dm-0 (vg-home)");
  EXPECT_TRUE(system_.Check("/dev/sda2").ok());
  EXPECT_TRUE(system_.Check("/dev/dm-0").ok());  // the volume itself is a target like any other
}

TEST_F(TargetGuardTest, AMountHighUpInTheStackIsFound) {
  // sda1 -> md0 -> dm-0 (crypt) -> dm-1 (LVM), mounted.
  system_.Disk("md0", 9, 0);
  system_.Put("/sys/class/block/md0/md/level", "raid1");
  system_.Disk("dm-0", 254, 0);
  system_.Put("/sys/class/block/dm-0/dm/name", "secret");
  system_.Disk("dm-1", 254, 1);
  system_.Put("/sys/class/block/dm-1/dm/name", "vg-home");
  system_.Holder("sda1", "md0");
  system_.Holder("md0", "dm-0");
  system_.Holder("dm-0", "dm-1");
  ExpectRefused("/dev/sda", "/dev/sda is held by md0, an array (raid1)");
  system_.Mount("254:1", "/home", "ext4", "/dev/mapper/vg-home");
  ExpectRefused("/dev/sda", "/dev/sda: dm-1 (vg-home) on it is mounted on /home");
}

TEST_F(TargetGuardTest, APartitionOfAnArrayThatIsMountedIsFound) {
  system_.Disk("md0", 9, 0);
  system_.Partition("md0", "md0p1", 259, 0);
  system_.Holder("sdb", "md0");
  system_.Mount("259:0", "/srv", "xfs", "/dev/md0p1");
  ExpectRefused("/dev/sdb", "md0p1 is mounted on /srv");
}

TEST_F(TargetGuardTest, ADiskUnderALoopDeviceIsRefused) {
  system_.Loop("loop0", 0, "/dev/sdb");
  ExpectRefused("/dev/sdb", "held by loop0, a loop device");
  EXPECT_THAT(system_.Check("/dev/sdb").message(), HasSubstr("losetup -d /dev/loop0"));
}

TEST_F(TargetGuardTest, AFileUnderALoopDeviceIsRefused) {
  system_.File("/srv/disk.img", 9);
  system_.Loop("loop3", 3, "/srv/disk.img");
  ExpectRefused("/srv/disk.img", "/srv/disk.img backs /dev/loop3");
}

TEST_F(TargetGuardTest, ALoopDeviceWhoseFileIsSharedByAnotherIsRefused) {
  system_.File("/srv/disk.img", 9);
  system_.Loop("loop3", 3, "/srv/disk.img");
  EXPECT_TRUE(system_.Check("/dev/loop3").ok());
  system_.Loop("loop4", 4, "/srv/disk.img");
  ExpectRefused("/dev/loop3", "/dev/loop3: its backing file backs /dev/loop4");
}

TEST_F(TargetGuardTest, ALoopDeviceIsRefusedForTheMountBelowIt) {
  system_.Loop("loop0", 0, "/dev/sda");
  EXPECT_TRUE(system_.Check("/dev/loop0").ok());
  system_.Mount("8:2", "/data", "ext4", "/dev/sda2");
  const std::string below = ": partition of the device below it, sda2 is mounted on /data";
  ExpectRefused("/dev/loop0", "/dev/loop0" + below);
  system_.Loop("loop1", 1, "/dev/loop0");
  ExpectRefused("/dev/loop1", "/dev/loop1" + below);
}

TEST_F(TargetGuardTest, ALoopDeviceOverAPartitionIsRefusedForTheDiskOfThat) {
  system_.Loop("loop0", 0, "/dev/sda1");
  system_.Mount("8:2", "/data", "ext4", "/dev/sda2");
  EXPECT_TRUE(system_.Check("/dev/loop0").ok()) << "another partition";
  system_.Mount("8:0", "/all", "ext4", "/dev/sda");
  ExpectRefused("/dev/loop0", "/dev/loop0: the disk sda below it is mounted on /all");
}

TEST_F(TargetGuardTest, ALoopDeviceIsRefusedForAnotherHolderOfWhatIsBelowIt) {
  system_.Loop("loop0", 0, "/dev/sdb");
  system_.Loop("loop1", 1, "/dev/sdb");
  ExpectRefused("/dev/loop0", "/dev/loop0: sdb below it is held by loop1, a loop device");
}

TEST_F(TargetGuardTest, APartitionOfALoopDeviceIsRefusedForWhatIsBelowThat) {
  system_.Loop("loop0", 0, "/dev/sdb");
  system_.Partition("loop0", "loop0p1", 259, 0);
  EXPECT_TRUE(system_.Check("/dev/loop0p1").ok());
  system_.Mount("8:16", "/data", "ext4", "/dev/sdb");
  ExpectRefused("/dev/loop0p1", "/dev/loop0p1: sdb below it is mounted on /data");
}

TEST_F(TargetGuardTest, ASwapFileIsRefused) {
  system_.File("/swap file", 11);
  system_.Swap("/swap\\040file");
  ExpectRefused("/swap file", "/swap file is swap");
}

TEST_F(TargetGuardTest, TheTraceItselfIsNoTarget) {
  system_.File("monday.tape", 12);
  system_.File("./monday.tape", 12);
  ExpectRefused("./monday.tape", "./monday.tape is monday.tape itself", {"monday.tape"});
  system_.Loop("loop3", 3, "monday.tape");
  ExpectRefused("/dev/loop3", "its backing file is monday.tape itself", {"monday.tape"});
}

TEST_F(TargetGuardTest, WhatCannotBeKnownToBeFreeIsNotFree) {
  system_.Remove("/proc/self/mountinfo");
  ExpectRefused("/dev/sdb", "cannot tell whether it is mounted");
}

TEST_F(TargetGuardTest, ADeviceThatSysfsDoesNotShowIsRefused) {
  system_.Remove("/sys/class/block/sdb/dev");
  ExpectRefused("/dev/sdb", "/sys does not show it");
}

TEST_F(TargetGuardTest, LinesThatAreNotAsDocumentedArePassedOver) {
  system_.Put("/proc/self/mountinfo", "\n36 35\nx y z\n36 35 8:16 / /data rw -\n- - - -\n");
  EXPECT_TRUE(system_.Check("/dev/sdb").ok());
}

TEST_F(TargetGuardTest, AnotherMapOverTheSameSectorsThatIsMountedIsRefused) {
  system_.Mapper("dm-0", 0, "scratch", "sdb", "0 2000 linear 8:16 1000");
  system_.Mapper("dm-1", 1, "home", "sdb", "0 500 linear 8:16 0\n500 100 linear 8:16 2900");
  EXPECT_TRUE(system_.Check("/dev/dm-0").ok());
  system_.Mount("254:1", "/home", "ext4", "/dev/mapper/home");
  ExpectRefused("/dev/dm-0", "/dev/dm-0: dm-1 (home) on the same sectors is mounted on /home");
}

TEST_F(TargetGuardTest, ANeighbourOnTheSameDiskIsNot) {
  system_.Mapper("dm-0", 0, "vg-scratch", "sdb", "0 2000 linear 8:16 1000");
  system_.Mapper("dm-1", 1, "vg-home", "sdb", "0 1000 linear 8:16 0\n1000 100 linear 8:16 3000");
  system_.Mount("254:1", "/home", "ext4", "/dev/mapper/vg-home");
  EXPECT_TRUE(system_.Check("/dev/dm-0").ok());
}

TEST_F(TargetGuardTest, MapsOverMapsAreFollowedDownToTheSectors) {
  system_.Mapper("dm-0", 0, "a", "sdb", "0 1000 linear 8:16 0");
  system_.Mapper("dm-1", 1, "b", "sdb", "0 1000 linear 8:16 500");
  system_.Mapper("dm-2", 2, "a-low", "dm-0", "0 500 linear 254:0 0");
  system_.Mapper("dm-3", 3, "b-crypt", "dm-1",
                 "0 484 crypt aes-xts-plain64 :64:logon:x 0 254:1 16");
  system_.Mount("254:3", "/secret", "ext4", "/dev/mapper/b-crypt");
  // Sectors 0 to 499 and 516 to 999.
  EXPECT_TRUE(system_.Check("/dev/dm-2").ok());
  system_.Put("table of dm-2", "0 517 linear 254:0 0");
  ExpectRefused("/dev/dm-2", "dm-3 (b-crypt) on the same sectors is mounted on /secret");
}

// A snapshot's content is its origin's where it has none of its own.
TEST_F(TargetGuardTest, TheOriginOfAMountedSnapshotIsRefusedAndASnapshotOfAMountedOriginIsNot) {
  system_.Mapper("dm-0", 0, "real", "sdb", "0 1000 linear 8:16 0");
  system_.Mapper("dm-1", 1, "cow", "sdb", "0 100 linear 8:16 1000");
  system_.Mapper("dm-2", 2, "origin", "dm-0", "0 1000 snapshot-origin 254:0");
  system_.Mapper("dm-3", 3, "snap", "dm-0", "0 1000 snapshot 254:0 254:1 P 8");
  system_.Holder("dm-1", "dm-3");
  FakeSystem other = system_;
  system_.Mount("254:3", "/backup", "ext4", "/dev/mapper/snap");
  ExpectRefused("/dev/dm-2", "dm-3 (snap) on the same sectors is mounted on /backup");
  other.Mount("254:2", "/", "ext4", "/dev/mapper/origin");
  EXPECT_TRUE(other.Check("/dev/dm-3").ok());
}

// Where the table is kept from us, all of what is below counts; but LVM keeps its volumes apart.
TEST_F(TargetGuardTest, AMapWhoseTableIsUnknownIsOverAllThatIsBelowIt) {
  system_.Mapper("dm-0", 0, "a", "sdb", "");
  system_.Mapper("dm-1", 1, "b", "sdb", "");
  system_.Remove("table of dm-0");
  system_.Remove("table of dm-1");
  system_.Mount("254:1", "/home", "ext4", "/dev/mapper/b");
  ExpectRefused("/dev/dm-0", "dm-1 (b) on the same sectors is mounted on /home");
  system_.Put("/sys/class/block/dm-0/dm/uuid", "LVM-aaaa1");
  system_.Put("/sys/class/block/dm-1/dm/uuid", "LVM-aaaa2");
  EXPECT_TRUE(system_.Check("/dev/dm-0").ok());
}

TEST_F(TargetGuardTest, AMapOverADiskThatAProgramWritesToIsRefused) {
  system_.Mapper("dm-0", 0, "a", "sdb", "0 1000 linear 8:16 0");
  system_.Put("/proc/4000012/comm", "qemu");
  system_.Put("/proc/4000012/fd/7", "");
  system_.Put("/proc/4000012/fdinfo/7", "flags:\t0100002");
  system_.Identity("/proc/4000012/fd/7", {.inode = 5, .block = DeviceNumber{8, 16}});
  ExpectRefused("/dev/dm-0", "/dev/dm-0: sdb below it is open for writing in process 4000012");
}

class TwoPathsTest : public TargetGuardTest {
 protected:
  void SetUp() override {
    TargetGuardTest::SetUp();
    for (const auto& [disk, minor] : {std::pair("sdc", 32u), std::pair("sdd", 48u)}) {
      const std::string folder = "/sys/class/block/" + std::string(disk);
      system_.Disk(disk, 8, minor);
      system_.Put(folder + "/size", "10000");
      system_.Put(folder + "/device/wwid", "naa.5000c500a1b2c3d4");
      for (uint32_t part : {1u, 2u}) {
        const std::string name = disk + std::to_string(part);
        system_.Partition(disk, name, 8, minor + part);
        system_.Put("/sys/class/block/" + name + "/start", std::to_string(part * 2048));
        system_.Put("/sys/class/block/" + name + "/size", "2048");
      }
    }
  }
};

TEST_F(TwoPathsTest, ADriveInUseByItsOtherPathIsRefused) {
  EXPECT_TRUE(system_.Check("/dev/sdc").ok());
  system_.Mount("8:49", "/data", "ext4", "/dev/sdd1");
  ExpectRefused("/dev/sdc",
                "/dev/sdc: sdd1, the same drive by another path (naa.5000c500a1b2c3d4), is mounted "
                "on /data");
  ExpectRefused("/dev/sdc1", "sdd1, the same drive by another path");
  EXPECT_TRUE(system_.Check("/dev/sdc2").ok()) << "another partition of it";
  EXPECT_TRUE(system_.Check("/dev/sda").ok());
}

TEST_F(TwoPathsTest, ADriveHeldByItsOtherPathIsRefused) {
  system_.Disk("md0", 9, 0);
  system_.Put("/sys/class/block/md0/md/level", "raid1");
  system_.Put("/sys/class/block/md0/slaves/sdd", "");
  system_.Holder("sdd", "md0");
  ExpectRefused("/dev/sdc", "/dev/sdc is held by md0, an array (raid1)");
}

TEST_F(TwoPathsTest, TheMultipathMapOverBothIsFree) {
  system_.Mapper("dm-0", 0, "mpatha", "sdc",
                 "0 10000 multipath 0 0 1 1 service-time 0 2 2 8:32 1 1 8:48 1 1");
  system_.Put("/sys/class/block/dm-0/slaves/sdd", "");
  system_.Holder("sdd", "dm-0");
  EXPECT_TRUE(system_.Check("/dev/dm-0").ok());
  ExpectRefused("/dev/sdc", "held by dm-0 (mpatha)");
}

// Cheap bridges say the same of every drive in them.
TEST_F(TwoPathsTest, AnIdentifierThatTellsNothingIsNone) {
  system_.Mount("8:49", "/data", "ext4", "/dev/sdd1");
  for (const char* disk : {"sdc", "sdd"}) {
    system_.Put("/sys/class/block/" + std::string(disk) + "/device/wwid", "naa.0000000000000000");
  }
  EXPECT_TRUE(system_.Check("/dev/sdc").ok());
  for (const char* disk : {"sdc", "sdd"}) {
    system_.Put("/sys/class/block/" + std::string(disk) + "/device/model", "Bridge");
    system_.Put("/sys/class/block/" + std::string(disk) + "/device/vpd_pg80", "S2RBNX0H");
  }
  ExpectRefused("/dev/sdc", "(model Bridge serial S2RBNX0H)");
  system_.Put("/sys/class/block/sdd/size", "20000");
  EXPECT_TRUE(system_.Check("/dev/sdc").ok()) << "of another size: another drive";
}

}  // namespace
}  // namespace blktape
