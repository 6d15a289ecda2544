#include "replay/engine/discard_ring.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

namespace blktape {
namespace {

TEST(DiscardsMayBlockTest, UnlessTheQueueSaysThatNothingIsThrottled) {
  const std::string disk = testing::TempDir() + "discard_ring_test/sdb";
  const std::string partition = disk + "/sdb1";
  std::filesystem::create_directories(disk + "/queue");
  std::filesystem::create_directories(partition);
  EXPECT_TRUE(DiscardsMayBlock(disk)) << "as of a device that is stacked on others";
  std::ofstream(disk + "/queue/wbt_lat_usec") << "2000\n";
  EXPECT_TRUE(DiscardsMayBlock(disk));
  EXPECT_TRUE(DiscardsMayBlock(partition));
  std::ofstream(disk + "/queue/wbt_lat_usec") << "0\n";
  EXPECT_FALSE(DiscardsMayBlock(disk));
  EXPECT_FALSE(DiscardsMayBlock(partition));
}

TEST(DiscardRuleTest, OnlyWhatComesWhileAnotherIsOutNeedsAWorker) {
  DiscardRule rule({true, false});
  EXPECT_FALSE(rule.NeedsWorker(0));
  rule.Sent();
  EXPECT_TRUE(rule.NeedsWorker(0));
  EXPECT_FALSE(rule.NeedsWorker(1)) << "the queue throttles nothing";
  EXPECT_FALSE(rule.Refused(0));
  EXPECT_FALSE(rule.NeedsWorker(0));
}

TEST(DiscardRuleTest, AllThatWereOutWhenTheKernelKnewNoCommandGoByTheIoctl) {
  DiscardRule rule({false});
  rule.Sent();
  rule.Sent();
  EXPECT_TRUE(rule.Refused(-EOPNOTSUPP));
  EXPECT_FALSE(rule.by_command());
  EXPECT_TRUE(rule.Refused(-EOPNOTSUPP));
}

TEST(DiscardRuleTest, ARangeThatIsRefusedSaysNothingOfTheNext) {
  DiscardRule rule({false});
  rule.Sent();
  EXPECT_TRUE(rule.Refused(-EINVAL));
  EXPECT_TRUE(rule.by_command());
  rule.Sent();
  EXPECT_FALSE(rule.Refused(-EIO)) << "the drive's own answer";
}

}  // namespace
}  // namespace blktape
