#include "replay/issue/spin_time.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace blktape {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kLeastNs = 150'000;

TEST(SpinTimeTest, IsTheLeastAsLongAsSleepsEndInTime) {
  SpinTime spin(kLeastNs);
  EXPECT_EQ(spin.ns(), kLeastNs);
  spin.Woke(1'000, 1'000);
  spin.Woke(2'000, 2'000 + 99'000);  // half as much again is still less
  EXPECT_EQ(spin.ns(), kLeastNs);
}

TEST(SpinTimeTest, IsHalfAsMuchAgainAsTheWorstWasLate) {
  SpinTime spin(kLeastNs);
  spin.Woke(1'000, 1'000 + 400'000);
  EXPECT_EQ(spin.ns(), 600'000);
  spin.Woke(1'000'000, 1'000'000 + 200'000);
  EXPECT_EQ(spin.ns(), 600'000);
}

TEST(SpinTimeTest, ForgetsAfterTwoSeconds) {
  SpinTime spin(kLeastNs);
  spin.Woke(10 * kSecond, 10 * kSecond + 400'000);
  spin.Woke(11 * kSecond + 500'000, 11 * kSecond + 500'000);  // one more second is remembered
  EXPECT_EQ(spin.ns(), 600'000);
  spin.Woke(12 * kSecond + 600'000, 12 * kSecond + 600'000);
  EXPECT_EQ(spin.ns(), kLeastNs);
}

TEST(SpinTimeTest, HasABound) {
  SpinTime spin(kLeastNs);
  spin.Woke(1'000, INT64_MAX / 2);
  EXPECT_EQ(spin.ns(), SpinTime::kLongestNs);
}

TEST(SpinTimeTest, MoreThanTheBoundIsKeptIfItIsTheLeast) {
  SpinTime spin(3'000'000);
  spin.Woke(1'000, 1'000 + 2'500'000);
  EXPECT_EQ(spin.ns(), 3'000'000);
}

}  // namespace
}  // namespace blktape
