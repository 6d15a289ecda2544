#include "capture/bpf/queue_shape.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/host/fake_sysfs.h"

namespace blktape {
namespace {

class QueueShapeTest : public ::testing::Test {
 protected:
  void AddQueue(const std::string& number, const std::string& tags, const std::string& reserved) {
    const std::string queue = kDisk + ("/mq/" + number);
    sysfs_.Write(queue + "/nr_tags", tags);
    sysfs_.Write(queue + "/nr_reserved_tags", reserved);
  }
  QueueShape Shape() const { return ReadQueueShape(sysfs_.root() + kDisk); }

  static constexpr char kDisk[] = "/sys/devices/virtual/block/disk";
  FakeSysfs sysfs_{::testing::TempDir() + "/shape"};
};

TEST_F(QueueShapeTest, ADiskWithoutQueuesIsBioBased) {
  sysfs_.Write(std::string(kDisk) + "/size", "2048");
  EXPECT_EQ(Shape().queues, 0u);
  EXPECT_EQ(Shape().tags, 0u);
}

TEST_F(QueueShapeTest, TheLargestQueueDecidesForAll) {
  AddQueue("0", "1023", "1");
  AddQueue("1", "600", "0");
  AddQueue("2", "1023", "2");
  EXPECT_EQ(Shape().queues, 3u);
  EXPECT_EQ(Shape().tags, 1025u);
}

TEST_F(QueueShapeTest, QueuesAreCountedByTheirNumbers) {
  AddQueue("0", "512", "0");
  AddQueue("11", "512", "0");
  EXPECT_EQ(Shape().queues, 12u);
}

TEST_F(QueueShapeTest, ASchedulerMayHaveMoreTagsThanTheDrive) {
  AddQueue("0", "32", "0");
  sysfs_.Write(std::string(kDisk) + "/queue/nr_requests", "1024");
  EXPECT_EQ(Shape().tags, 1024u);
}

TEST_F(QueueShapeTest, AShallowQueueMayBecomeDeeperWhileItIsRecorded) {
  AddQueue("0", "32", "0");
  EXPECT_EQ(Shape().tags, 256u);
}

}  // namespace
}  // namespace blktape
