#include "replay/discard_ring.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace blktape
