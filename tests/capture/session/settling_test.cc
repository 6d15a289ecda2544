#include "capture/session/settling.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "base/units.h"

namespace blktape {
namespace {

constexpr int64_t kSecond = kNanosPerSecond;

TEST(SettlingTest, DoneOnceTheCacheIsCleanAndTheDiskQuietForASecond) {
  uint64_t dirty_kib = 5000;
  Settling settling([&] { return dirty_kib; }, /*now_ns=*/0, /*bound_ns=*/40 * kSecond,
                    /*ios=*/100);
  EXPECT_EQ(settling.Done(2 * kSecond, 100), std::nullopt) << "quiet, but not written";
  dirty_kib = 64;
  EXPECT_EQ(settling.Done(3 * kSecond, 101), std::nullopt) << "written, but not quiet";
  EXPECT_EQ(settling.Done(4 * kSecond - 1, 101), std::nullopt);
  EXPECT_EQ(settling.Done(4 * kSecond, 101), true);
}

TEST(SettlingTest, IsNotWaitedForLongerThanItsBound) {
  Settling settling([] { return uint64_t{65}; }, 0, 5 * kSecond, 0);
  EXPECT_EQ(settling.Done(5 * kSecond - 1, 0), std::nullopt);
  EXPECT_EQ(settling.Done(5 * kSecond, 0), false);
}

}  // namespace
}  // namespace blktape
