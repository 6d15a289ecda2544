#include "replay/engine/poll_limits.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace blktape {
namespace {

class PollLimitsTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(disk_ + "/queue"); }
  static void Write(const std::string& path, const std::string& text) {
    std::ofstream(path) << text << "\n";
  }
  // A disk of its own for each test.
  const std::string disk_ = testing::TempDir() + "poll_limits_" +
                            testing::UnitTest::GetInstance()->current_test_info()->name() +
                            "/nvme0n1";
};

TEST_F(PollLimitsTest, ARequestPollsThatTheBlockLayerDoesNotSplit) {
  Write(disk_ + "/queue/io_poll", "1");
  Write(disk_ + "/queue/max_sectors_kb", "512");
  Write(disk_ + "/queue/max_segments", "127");
  Write(disk_ + "/queue/chunk_sectors", "0");
  const PollLimits limits = ReadPollLimits(disk_);
  EXPECT_TRUE(limits.has_queues);
  // 127 segments of a page are less than 512 KiB.
  EXPECT_TRUE(limits.Polls(4096, 127 * 4096));
  EXPECT_FALSE(limits.Polls(4096, 128 * 4096));
  Write(disk_ + "/queue/max_sectors_kb", "8");
  EXPECT_TRUE(ReadPollLimits(disk_).Polls(0, 8192));
  EXPECT_FALSE(ReadPollLimits(disk_).Polls(0, 8193));
}

TEST_F(PollLimitsTest, OneThatCrossesAChunkDoesNotPollCountedFromTheBeginningOfTheDisk) {
  Write(disk_ + "/queue/io_poll", "1");
  Write(disk_ + "/queue/chunk_sectors", "256");  // 128 KiB
  EXPECT_TRUE(ReadPollLimits(disk_).Polls(0, 131'072));
  EXPECT_TRUE(ReadPollLimits(disk_).Polls(131'072 - 4096, 4096));
  EXPECT_FALSE(ReadPollLimits(disk_).Polls(131'072 - 4096, 8192));
  const std::string partition = disk_ + "/nvme0n1p1";
  std::filesystem::create_directories(partition);
  Write(partition + "/start", "248");  // 4 KiB before the end of a chunk
  const PollLimits limits = ReadPollLimits(partition);
  EXPECT_TRUE(limits.has_queues) << "those of its disk";
  EXPECT_TRUE(limits.Polls(0, 4096));
  EXPECT_FALSE(limits.Polls(0, 8192));
  EXPECT_TRUE(limits.Polls(4096, 131'072));
}

TEST_F(PollLimitsTest, ADriverWithoutPollQueuesSaysSo) {
  Write(disk_ + "/queue/io_poll", "0");
  EXPECT_FALSE(ReadPollLimits(disk_).has_queues);
}

TEST_F(PollLimitsTest, WhatSysfsDoesNotSayDoesNotLimit) {
  const PollLimits limits = ReadPollLimits(disk_);
  EXPECT_TRUE(limits.has_queues);
  EXPECT_TRUE(limits.Polls(12'345, uint64_t{1} << 40));
}

}  // namespace
}  // namespace blktape
