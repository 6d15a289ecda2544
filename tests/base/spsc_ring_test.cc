#include "base/spsc_ring.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>

namespace blktape {
namespace {

TEST(SpscRingTest, HoldsItsCapacityInOrder) {
  SpscRing<int> ring(4);
  EXPECT_EQ(ring.Front(), nullptr);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(ring.TryPush(i));
  EXPECT_FALSE(ring.TryPush(4));
  EXPECT_EQ(ring.size(), 4u);
  EXPECT_EQ(*ring.Front(), 0);
  ring.Pop();
  EXPECT_TRUE(ring.TryPush(4));
  for (int i = 1; i <= 4; ++i) {
    ASSERT_NE(ring.Front(), nullptr);
    EXPECT_EQ(*ring.Front(), i);
    ring.Pop();
  }
  EXPECT_EQ(ring.Front(), nullptr);
}

TEST(SpscRingTest, TwoThreadsLoseAndReorderNothing) {
  constexpr uint64_t kItems = 200'000;
  SpscRing<uint64_t> ring(64);
  std::thread pusher([&ring] {
    for (uint64_t i = 0; i < kItems; ++i) {
      while (!ring.TryPush(i)) std::this_thread::yield();
    }
  });
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < kItems; ++i) {
    while (ring.Front() == nullptr) std::this_thread::yield();
    wrong += *ring.Front() == i ? 0 : 1;
    ring.Pop();
  }
  pusher.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace blktape
