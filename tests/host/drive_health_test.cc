#include "host/drive_health.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

namespace blktape {
namespace {

class DriveHealthTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(testing::TempDir()) /
            testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
  }
  void Write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  std::string At(const std::string& path) const { return (root_ / path).string(); }
  std::filesystem::path root_;
};

TEST_F(DriveHealthTest, TheMonitorOfASataDriveTellsItsTemperature) {
  Write("sda/device/hwmon/hwmon4/temp1_input", "41000");
  Write("sda/device/hwmon/hwmon4/temp1_max", "70000");
  const DriveHealth health = ReadDriveHealth(At("sda"), -1);
  EXPECT_EQ(health.temperature, 41'000);
  EXPECT_EQ(health.temperature_limit, 70'000);
  EXPECT_EQ(health.throttles, std::nullopt);
}

TEST_F(DriveHealthTest, TheMonitorOfAnNvmeDriveIsBesideItsController) {
  Write("nvme0n1/device/hwmon2/temp1_input", "-5150");
  EXPECT_EQ(ReadDriveHealth(At("nvme0n1"), -1).temperature, -5'150);
}

TEST_F(DriveHealthTest, WhatNobodyTellsIsAbsent) {
  Write("vda/dev", "254:0");
  const DriveHealth health = ReadDriveHealth(At("vda"), -1);
  EXPECT_EQ(health.temperature, std::nullopt);
  EXPECT_EQ(health.temperature_limit, std::nullopt);
  EXPECT_EQ(DriveWriteCache(At("vda"), -1), std::nullopt);
  EXPECT_EQ(CpuThrottles(At("cpu")), std::nullopt);
}

// NVMe base specification: composite temperature in kelvin in bytes 1 and 2, counts of thermal
// management transitions from byte 216, their seconds from 224.
TEST_F(DriveHealthTest, TheSmartLogTellsHowOftenTheDriveSlowedItselfDown) {
  std::array<std::byte, 512> log{};
  log[1] = std::byte{0x67};  // 0x0167 = 359 K
  log[2] = std::byte{0x01};
  log[216] = std::byte{3};
  log[221] = std::byte{1};  // 256
  log[224] = std::byte{60};
  log[228] = std::byte{5};
  const DriveHealth health = ParseNvmeSmartLog(log);
  EXPECT_EQ(health.temperature, 86'000);
  EXPECT_EQ(health.throttles, 259u);
  EXPECT_EQ(health.throttled_s, 65u);
  EXPECT_EQ(ParseNvmeSmartLog(std::span(log).first(100)).temperature, std::nullopt);
}

TEST_F(DriveHealthTest, TheDriveItselfTellsOfItsCache) {
  Write("sda/device/scsi_disk/2:0:0:0/cache_type", "write back, no read (daft)");
  Write("sdb/device/scsi_disk/3:0:0:0/cache_type", "none");
  Write("vda/cache_type", "write back");
  EXPECT_EQ(DriveWriteCache(At("sda"), -1), "write back");
  EXPECT_EQ(DriveWriteCache(At("sdb"), -1), "write through");
  EXPECT_EQ(DriveWriteCache(At("vda"), -1), "write back");
}

TEST_F(DriveHealthTest, ThrottlingOfAllCpusIsCounted) {
  Write("cpu/cpu0/thermal_throttle/core_throttle_count", "2");
  Write("cpu/cpu0/thermal_throttle/package_throttle_count", "5");
  Write("cpu/cpu1/thermal_throttle/core_throttle_count", "40");
  EXPECT_EQ(CpuThrottles(At("cpu")), 47u);
}

}  // namespace
}  // namespace blktape
