#include "host/sysfs_device.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace blktape {
namespace {

class SysfsDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(testing::TempDir()) /
            testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
  }
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  std::filesystem::path root_;
};

TEST_F(SysfsDeviceTest, AnNvmeDriveIsDescribedAsTheKernelShowsIt) {
  const std::string disk = "devices/pci0000:00/0000:00:1d.0/nvme/nvme0/nvme0n1";
  Write(disk + "/dev", "259:3");
  Write(disk + "/size", "2000409264");
  Write(disk + "/device/model", "Samsung SSD 970 EVO Plus 1TB            ");
  Write(disk + "/device/firmware_rev", "2B2QEXM7");
  Write(disk + "/device/serial", "S4EWNX0M");
  Write(disk + "/queue/logical_block_size", "512");
  Write(disk + "/queue/scheduler", "[none] mq-deadline kyber");
  Write(disk + "/queue/write_cache", "write back");
  Write(disk + "/queue/fua", "1");
  Write(disk + "/queue/rotational", "0");
  Write(disk + "/mq/0/cpu_list", "0");
  Write(disk + "/mq/1/cpu_list", "1");

  const auto device = DescribeDisk((root_ / disk).string());
  ASSERT_TRUE(device.ok()) << device.status().message();
  EXPECT_EQ(device->name(), "nvme0n1");
  EXPECT_EQ(device->major(), 259u);
  EXPECT_EQ(device->minor(), 3u);
  EXPECT_EQ(device->size_bytes(), 1'024'209'543'168u);
  EXPECT_EQ(device->model(), "Samsung SSD 970 EVO Plus 1TB");
  EXPECT_EQ(device->firmware(), "2B2QEXM7");
  EXPECT_EQ(device->serial(), "");
  EXPECT_EQ(device->transport(), "nvme");
  EXPECT_EQ(device->scheduler(), "none");
  EXPECT_EQ(device->write_cache(), "write back");
  EXPECT_TRUE(device->fua());
  EXPECT_TRUE(device->has_rotational());
  EXPECT_FALSE(device->rotational());
  EXPECT_EQ(device->hardware_queues(), 2u);
  EXPECT_FALSE(device->has_nr_requests());
}

TEST_F(SysfsDeviceTest, AVirtualDeviceIsOfItsDriversKind) {
  const std::string disk = "devices/virtual/block/dm-3";
  Write(disk + "/dev", "254:3");
  const auto device = DescribeDisk((root_ / disk).string());
  ASSERT_TRUE(device.ok());
  EXPECT_EQ(device->transport(), "dm");
  EXPECT_FALSE(device->has_size_bytes());
}

TEST_F(SysfsDeviceTest, AFolderThatIsNoDiskIsNotFound) {
  EXPECT_EQ(DescribeDisk(root_.string()).status().code(), StatusCode::kNotFound);
}

TEST_F(SysfsDeviceTest, TheLinkOfAnNvmeDriveIsItsOwnNotThatOfTheBridgeAbove) {
  const std::string port = "devices/pci0000:00/0000:00:1d.0";
  const std::string disk = port + "/0000:3d:00.0/nvme/nvme0/nvme0n1";
  Write(disk + "/dev", "259:3");
  Write(port + "/current_link_width", "16");
  Write(port + "/current_link_speed", "16.0 GT/s PCIe");
  Write(port + "/0000:3d:00.0/current_link_width", "2");
  Write(port + "/0000:3d:00.0/current_link_speed", "8.0 GT/s PCIe");
  Write(port + "/0000:3d:00.0/max_link_width", "4");
  Write(port + "/0000:3d:00.0/max_link_speed", "16.0 GT/s PCIe");
  const auto device = DescribeDisk((root_ / disk).string());
  ASSERT_TRUE(device.ok()) << device.status().message();
  EXPECT_EQ(device->link_speed(), "8.0 GT/s PCIe");
  EXPECT_EQ(device->link_width(), 2u);
  EXPECT_EQ(device->link_speed_max(), "16.0 GT/s PCIe");
  EXPECT_EQ(device->link_width_max(), 4u);
}

TEST_F(SysfsDeviceTest, TheLinkOfASataDriveIsThatOfItsPort) {
  const std::string ata = "devices/pci0000:00/0000:00:17.0/ata3";
  const std::string disk = ata + "/host2/target2:0:0/2:0:0:0/block/sda";
  Write("devices/pci0000:00/0000:00:17.0/current_link_speed", "Unknown");
  Write(disk + "/dev", "8:0");
  Write(ata + "/link3/ata_link/link3/sata_spd", "3.0 Gbps");
  const auto device = DescribeDisk((root_ / disk).string());
  ASSERT_TRUE(device.ok()) << device.status().message();
  EXPECT_EQ(device->link_speed(), "3.0 Gbps");
  EXPECT_FALSE(device->has_link_width());
}

TEST_F(SysfsDeviceTest, ADriveWhoseLinkTheKernelDoesNotTellHasNone) {
  const std::string disk = "devices/pci0000:00/0000:00:05.0/virtio2/block/vda";
  Write("devices/pci0000:00/0000:00:05.0/current_link_speed", "2.5 GT/s PCIe");
  Write(disk + "/dev", "254:0");
  const auto device = DescribeDisk((root_ / disk).string());
  ASSERT_TRUE(device.ok()) << device.status().message();
  EXPECT_EQ(device->link_speed(), "");
}

}  // namespace
}  // namespace blktape
