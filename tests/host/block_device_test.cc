#include "host/block_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"
#include "capture/source/capture_source.h"
#include "format/trace.pb.h"
#include "host/mount_table.h"
#include "tests/host/fake_sysfs.h"

namespace blktape {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kSda[] = "pci0000:00/ata1/host0/target0:0:0/0:0:0:0/block/sda";
constexpr char kSdb[] = "pci0000:00/ata2/host1/target1:0:0/1:0:0:0/block/sdb";
constexpr char kNvme[] = "pci0000:00/0000:00:01.0/nvme/nvme0/nvme0n1";

class BlockDevicesTest : public ::testing::Test {
 protected:
  BlockDevicesTest() : sysfs_(::testing::TempDir() + "/block_devices"), devices_(sysfs_) {
    sysfs_.AddDisk(kSda, "8:0");
    sysfs_.AddPartition(kSda, "sda1", "8:1");
    sysfs_.AddPartition(kSda, "sda2", "8:2");
    sysfs_.AddDisk(kSdb, "8:16");
    sysfs_.AddDisk(kNvme, "259:0");
    sysfs_.AddPartition(kNvme, "nvme0n1p3", "259:3");
  }

  static std::vector<std::string> Names(const Result<std::vector<Disk>>& disks) {
    std::vector<std::string> names;
    if (!disks.ok()) return {disks.status().message()};
    for (const Disk& disk : *disks) names.push_back(disk.description.name());
    return names;
  }
  void Mountinfo(const std::string& text) { sysfs_.Write("/proc/self/mountinfo", text); }

  FakeSysfs sysfs_;
  BlockDevices devices_;
};

TEST_F(BlockDevicesTest, ADiskIsItself) {
  const auto disks = devices_.Under("sdb");
  EXPECT_THAT(Names(disks), ElementsAre("sdb"));
  EXPECT_EQ(disks->at(0).dev, (8u << 20) | 16u);
}

TEST_F(BlockDevicesTest, APartitionLeadsToItsDisk) {
  EXPECT_THAT(Names(devices_.Under("sda2")), ElementsAre("sda"));
  EXPECT_THAT(Names(devices_.Under("nvme0n1p3")), ElementsAre("nvme0n1"));
}

TEST_F(BlockDevicesTest, ALogicalVolumeOnCryptOnRaidLeadsToAllDisksOnce) {
  sysfs_.AddDisk("virtual/block/md0", "9:0");
  sysfs_.AddSlave("virtual/block/md0", std::string(kSda) + "/sda2");
  sysfs_.AddSlave("virtual/block/md0", std::string(kNvme) + "/nvme0n1p3");
  sysfs_.AddDisk("virtual/block/dm-0", "253:0");
  sysfs_.AddSlave("virtual/block/dm-0", "virtual/block/md0");
  sysfs_.AddDisk("virtual/block/dm-1", "253:1");
  sysfs_.AddSlave("virtual/block/dm-1", "virtual/block/dm-0");
  sysfs_.AddSlave("virtual/block/dm-1", std::string(kSda) + "/sda1");
  EXPECT_THAT(Names(devices_.Under("dm-1")), ElementsAre("sda", "nvme0n1"));
}

TEST_F(BlockDevicesTest, LayersAreWhatLiesOnADiskAndTellWhetherThatIsAll) {
  sysfs_.AddDisk("virtual/block/dm-0", "253:0");
  sysfs_.AddSlave("virtual/block/dm-0", std::string(kSda) + "/sda2");
  sysfs_.AddDisk("virtual/block/dm-1", "253:1");
  sysfs_.AddSlave("virtual/block/dm-1", "virtual/block/dm-0");
  sysfs_.AddDisk("virtual/block/md0", "9:0");
  sysfs_.AddSlave("virtual/block/md0", kSdb);
  sysfs_.AddSlave("virtual/block/md0", "virtual/block/dm-0");
  const auto layers_on = [this](const std::string& name) {
    return devices_.LayersOn(*devices_.Under(name));
  };
  const Layer crypt = {.dev = 253 << 20, .one_disk = true};
  const Layer volume = {.dev = 253 << 20 | 1, .one_disk = true};
  const Layer mirror = {.dev = 9 << 20, .one_disk = false};
  EXPECT_THAT(layers_on("sda"), ElementsAre(mirror, crypt, volume));
  EXPECT_THAT(layers_on("sdb"), ElementsAre(mirror));
  EXPECT_THAT(layers_on("nvme0n1"), IsEmpty());
}

TEST_F(BlockDevicesTest, DevicesThatStandOnEachOtherEndInAnErrorNotInALoop) {
  sysfs_.AddDisk("virtual/block/dm-0", "253:0");
  sysfs_.AddDisk("virtual/block/dm-1", "253:1");
  sysfs_.AddSlave("virtual/block/dm-0", "virtual/block/dm-1");
  sysfs_.AddSlave("virtual/block/dm-1", "virtual/block/dm-0");
  EXPECT_EQ(devices_.Under("dm-0").status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(BlockDevicesTest, WhatDoesNotExistIsNamedWithAWayOut) {
  const Status status = devices_.Under("sdx").status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("there is no block device \"sdx\""));
  EXPECT_THAT(status.message(), HasSubstr("try:  lsblk"));
}

TEST_F(BlockDevicesTest, AFileIsNoDeviceAndTheMessagePointsToMount) {
  sysfs_.Write("/home/file", "text");
  const Status status = devices_.Under("/home/file").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("--mount /home/file"));
}

TEST_F(BlockDevicesTest, AMountIsTheLongestMountPointThatHoldsThePath) {
  sysfs_.Write("/home/me/file", "text");
  sysfs_.Write("/homes", "text");
  Mountinfo(
      "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
      "23 22 259:3 / /home rw,relatime shared:2 - xfs /dev/nvme0n1p3 rw");
  EXPECT_THAT(Names(devices_.UnderMount("/home/me/file")), ElementsAre("nvme0n1"));
  EXPECT_THAT(Names(devices_.UnderMount("/homes")), ElementsAre("sda"));
  EXPECT_THAT(Names(devices_.UnderMount("/")), ElementsAre("sda"));
}

TEST_F(BlockDevicesTest, TheLastOfStackedMountsIsTheOneSeen) {
  sysfs_.Write("/mnt/x", "text");
  Mountinfo(
      "22 1 8:1 / /mnt rw - ext4 /dev/sda1 rw\n"
      "23 22 8:16 / /mnt rw - ext4 /dev/sdb rw");
  EXPECT_THAT(Names(devices_.UnderMount("/mnt/x")), ElementsAre("sdb"));
}

TEST_F(BlockDevicesTest, AnOverlayLeadsToTheDisksOfItsLayers) {
  sysfs_.Write("/merged/x", "text");
  sysfs_.Write("/lower/x", "text");
  sysfs_.Write("/with blank/upper/x", "text");
  Mountinfo(
      "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
      "23 22 8:16 / /with\\040blank rw - ext4 /dev/sdb rw\n"
      "24 22 0:45 / /merged rw - overlay overlay "
      "rw,lowerdir=/lower,upperdir=/with\\040blank/upper,workdir=/w");
  EXPECT_THAT(Names(devices_.UnderMount("/merged/x")), ElementsAre("sda", "sdb"));
}

TEST_F(BlockDevicesTest, LayersWithCommasAndColonsInTheirNamesAreFound) {
  // As Linux 6.1 shows -o 'lowerdir=/a\:b:/a\,b/l,upperdir=/c\,d/u'.
  const std::string options = R"(rw,lowerdir=/a\134:b:/a\134\054b/l,upperdir=/c\134\054d/u)";
  EXPECT_THAT(OverlayLayers(options), ElementsAre("/a:b", "/a,b/l", "/c,d/u"));
  // As Linux 6.8 shows layers that were given one by one.
  EXPECT_THAT(OverlayLayers("ro,lowerdir+=/one,lowerdir+=/two,datadir+=/three,workdir=/w"),
              ElementsAre("/one", "/two", "/three"));
}

TEST_F(BlockDevicesTest, AnOverlayOfWhichALayerIsInMemoryLeadsToTheDiskOfTheOther) {
  sysfs_.Write("/merged/x", "text");
  sysfs_.Write("/run/upper/x", "text");
  const std::string mounts =
      "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
      "23 22 0:45 / /merged rw - overlay overlay rw,lowerdir=LOWER,upperdir=/run/upper\n"
      "24 22 0:31 / /run rw - tmpfs tmpfs rw";
  const auto with_lower = [&](const std::string& lower) {
    return std::string(mounts).replace(mounts.find("LOWER"), 5, lower);
  };
  Mountinfo(with_lower("/"));
  EXPECT_THAT(Names(devices_.UnderMount("/merged/x")), ElementsAre("sda"));
  Mountinfo(with_lower("/run"));
  const Status status = devices_.UnderMount("/merged/x").status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("lies on tmpfs"));
}

TEST_F(BlockDevicesTest, AnOverlayOfFoldersNotToBeSeenIsRefusedWithAWayOut) {
  // In a container its own root has layers of the host's.
  sysfs_.Write("/merged/x", "text");
  for (const char* lower : {"relative", "/of/the/host", "/merged"}) {
    Mountinfo(std::string("22 1 0:45 / / rw - overlay overlay rw,lowerdir=") + lower);
    const Status status = devices_.UnderMount("/merged/x").status();
    EXPECT_EQ(status.code(), StatusCode::kNotFound) << lower;
    EXPECT_THAT(status.message(), HasSubstr(lower));
    EXPECT_THAT(status.message(), HasSubstr("try:  --device NAME"));
  }
}

TEST_F(BlockDevicesTest, AMountBelowALaterOneIsNotSeen) {
  sysfs_.Write("/mnt/deep/x", "text");
  Mountinfo(
      "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
      "23 22 8:16 / /mnt/deep rw - ext4 /dev/sdb rw\n"
      "24 22 259:3 / /mnt rw - ext4 /dev/nvme0n1p3 rw");
  EXPECT_THAT(Names(devices_.UnderMount("/mnt/deep/x")), ElementsAre("nvme0n1"));
}

TEST_F(BlockDevicesTest, AMountOverTheRootOfAllIsTheRoot) {
  sysfs_.Write("/home/x", "text");
  Mountinfo(
      "1 1 0:2 / / rw - rootfs rootfs rw\n"
      "2 1 8:16 / /home rw - ext4 /dev/sdb rw\n"
      "22 1 8:1 / / rw - ext4 /dev/sda1 rw");
  EXPECT_THAT(Names(devices_.UnderMount("/home/x")), ElementsAre("sda"));
}

TEST_F(BlockDevicesTest, TheFurtherDevicesOfAnXfsAreAmongItsOptions) {
  EXPECT_THAT(XfsDevices(R"(rw,logdev=/dev/a\040log,noquota,rtdev=/dev/sdc,logbsize=32k)"),
              ElementsAre("/dev/a log", "/dev/sdc"));
}

TEST_F(BlockDevicesTest, BtrfsLeadsToAllItsDisks) {
  sysfs_.Write("/pool/x", "text");
  Mountinfo("22 1 0:31 /@ /pool rw - btrfs /dev/sdb rw");
  sysfs_.Link("/sys/fs/btrfs/1234/devices/sdb", kSdb);
  sysfs_.Link("/sys/fs/btrfs/1234/devices/nvme0n1", kNvme);
  sysfs_.Link("/sys/fs/btrfs/9999/devices/sda1", std::string(kSda) + "/sda1");
  EXPECT_THAT(BtrfsMembers(sysfs_, *sysfs_.Resolve("/sys/class/block/sdb")),
              ElementsAre(HasSubstr("nvme0n1"), HasSubstr("sdb")));
  EXPECT_THAT(BtrfsMembers(sysfs_, "/elsewhere"), IsEmpty());
}

TEST_F(BlockDevicesTest, AFileSystemWithoutADiskIsRefusedByName) {
  sysfs_.Write("/tmp/x", "text");
  Mountinfo("22 1 0:31 / /tmp rw - tmpfs tmpfs rw");
  const Status status = devices_.UnderMount("/tmp/x").status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("/tmp/x lies on tmpfs"));
}

TEST_F(BlockDevicesTest, AllMeansHardwareWithAMedium) {
  sysfs_.AddDisk("virtual/block/loop0", "7:0");
  sysfs_.AddDisk("virtual/block/zram0", "252:0");
  sysfs_.AddDisk("pci0000:00/ata3/host2/block/sr0", "11:0");
  sysfs_.AddDisk("pci0000:00/usb1/1-1/host5/block/sdc", "8:32");
  sysfs_.Write("/sys/devices/pci0000:00/usb1/1-1/host5/block/sdc/size", "0");
  EXPECT_THAT(Names(devices_.AllPhysical()), ElementsAre("nvme0n1", "sda", "sdb"));
}

TEST_F(BlockDevicesTest, PartitionsAreListedByNumber) {
  const auto disks = devices_.Under("sda");
  EXPECT_THAT(devices_.PartitionsOf(disks->at(0)), ElementsAre((8u << 20) | 1u, (8u << 20) | 2u));
  EXPECT_THAT(devices_.PartitionsOf(devices_.Under("sdb")->at(0)), IsEmpty());
}

TEST_F(BlockDevicesTest, ADiskThatCameBackUnderAnotherNumberIsNotTheSame) {
  const Disk sdb = devices_.Under("sdb")->at(0);
  EXPECT_TRUE(devices_.IsPresent(sdb));
  sysfs_.Write("/sys/devices/" + std::string(kSdb) + "/dev", "8:32");
  EXPECT_FALSE(devices_.IsPresent(sdb));
  std::filesystem::remove(sysfs_.root() + "/sys/class/block/sdb");
  EXPECT_FALSE(devices_.IsPresent(sdb));
}

TEST_F(BlockDevicesTest, ADiskExchangedUnderNameAndNumberIsNotTheSame) {
  sysfs_.Write("/sys/devices/" + std::string(kSdb) + "/diskseq", "4");
  const Disk sdb = devices_.Under("sdb")->at(0);
  EXPECT_TRUE(devices_.IsPresent(sdb));
  const std::string before = devices_.Census();
  EXPECT_EQ(devices_.Census(), before);
  sysfs_.Write("/sys/devices/" + std::string(kSdb) + "/diskseq", "9");
  EXPECT_FALSE(devices_.IsPresent(sdb));
  EXPECT_NE(devices_.Census(), before);
}

TEST_F(BlockDevicesTest, RangesOfADiscardAndZonesAreTold) {
  const std::string queue = "/sys/devices/" + std::string(kSda) + "/queue/";
  EXPECT_EQ(devices_.Under("sda")->at(0).discard_ranges, std::nullopt);
  sysfs_.Write(queue + "max_discard_segments", "256");
  sysfs_.Write(queue + "chunk_sectors", "524288");
  EXPECT_EQ(devices_.Under("sda")->at(0).discard_ranges, 256u);
  // Of a RAID that is the size of a stripe.
  EXPECT_EQ(devices_.Under("sda")->at(0).zone_sectors, 0u);
  sysfs_.Write(queue + "zoned", "host-managed");
  EXPECT_EQ(devices_.Under("sda")->at(0).zone_sectors, 524'288u);
}

TEST_F(BlockDevicesTest, ADiskWithoutHardwareQueuesTakesBios) {
  sysfs_.Write("/sys/devices/" + std::string(kSda) + "/mq/0/nr_tags", "32");
  EXPECT_EQ(devices_.Under("sda")->at(0).bio_based, false);
  sysfs_.AddDisk("virtual/block/zram0", "252:0");
  EXPECT_EQ(devices_.Under("zram0")->at(0).bio_based, true);
}

TEST_F(BlockDevicesTest, ADescriptionHoldsWhatSysfsTellsAndNothingElse) {
  const std::string folder = "/sys/devices/" + std::string(kNvme);
  sysfs_.Write(folder + "/size", "1953525168");
  sysfs_.Write(folder + "/device/model", "Samsung SSD 990 PRO 1TB                 ");
  sysfs_.Write(folder + "/device/serial", "S6Z1NJ0W000000");
  sysfs_.Write(folder + "/device/firmware_rev", "4B2QJXD7");
  sysfs_.Write(folder + "/queue/logical_block_size", "512");
  sysfs_.Write(folder + "/queue/physical_block_size", "4096");
  sysfs_.Write(folder + "/queue/rotational", "0");
  sysfs_.Write(folder + "/queue/scheduler", "[none] mq-deadline kyber");
  sysfs_.Write(folder + "/queue/write_cache", "write back");
  sysfs_.Write(folder + "/queue/fua", "1");
  sysfs_.Write(folder + "/queue/discard_granularity", "4096");
  sysfs_.Write(folder + "/queue/discard_max_bytes", "2199023255040");
  sysfs_.Write(folder + "/queue/nr_requests", "1023");
  sysfs_.Write(folder + "/queue/zoned", "none");
  sysfs_.Write(folder + "/mq/0/nr_tags", "1023");
  sysfs_.Write(folder + "/mq/1/nr_tags", "1023");
  const auto disks = devices_.Under("nvme0n1");
  ASSERT_TRUE(disks.ok());
  const proto::Device& device = disks->at(0).description;
  EXPECT_EQ(device.size_bytes(), 1'000'204'886'016u);
  EXPECT_EQ(device.model(), "Samsung SSD 990 PRO 1TB");
  EXPECT_EQ(device.firmware(), "4B2QJXD7");
  EXPECT_EQ(device.serial(), "") << "a recording holds no serial number";
  EXPECT_EQ(device.logical_block_bytes(), 512u);
  EXPECT_EQ(device.physical_block_bytes(), 4096u);
  EXPECT_TRUE(device.has_rotational());
  EXPECT_FALSE(device.rotational());
  EXPECT_EQ(device.scheduler(), "none");
  EXPECT_EQ(device.write_cache(), "write back");
  EXPECT_TRUE(device.fua());
  EXPECT_EQ(device.discard_granularity_bytes(), 4096u);
  EXPECT_EQ(device.discard_max_bytes(), 2'199'023'255'040u);
  EXPECT_EQ(device.nr_requests(), 1023u);
  EXPECT_EQ(device.zoned(), "none");
  EXPECT_EQ(device.transport(), "nvme");
  EXPECT_EQ(device.hardware_queues(), 2u);
  EXPECT_FALSE(device.has_read_ahead_kb());
  EXPECT_FALSE(device.has_write_zeroes_max_bytes());
  EXPECT_FALSE(device.is_file());
}

}  // namespace
}  // namespace blktape
