#include "replay/issue/buffer_arena.h"

#include <gtest/gtest.h>

#include <cstring>
#include <iterator>
#include <map>
#include <random>
#include <vector>

namespace blktape {
namespace {

TEST(BufferArenaTest, HandsOutNoMoreThanItHas) {
  Result<BufferArena> arena = BufferArena::Create(16384);
  ASSERT_TRUE(arena.ok());
  std::byte* a = arena->Acquire(4096);
  std::byte* c = arena->Acquire(512);   // takes 4096
  std::byte* b = arena->Acquire(4097);  // takes 8192
  ASSERT_NE(a, nullptr);
  ASSERT_NE(b, nullptr);
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(arena->Acquire(512), nullptr);
  EXPECT_EQ(arena->out_bytes(), 16384u);
  arena->Release(a, 4096);
  EXPECT_EQ(arena->Acquire(8192), nullptr) << "its neighbour is out";
  arena->Release(c, 512);
  EXPECT_NE(arena->Acquire(8192), nullptr) << "the two became one again";
  arena->Release(b, 4097);
}

TEST(BufferArenaTest, RequestsOfAnySizeFillItToTheLastPage) {
  constexpr uint64_t kPage = 4096;
  constexpr uint64_t kRequest = 320 * kPage;  // 1.25 MiB, as the kernel makes them of a large file
  const uint64_t capacity = 51 * kRequest + kPage;
  Result<BufferArena> arena = BufferArena::Create(capacity);
  ASSERT_TRUE(arena.ok());
  std::vector<std::byte*> out;
  for (int i = 0; i < 51; ++i) {
    out.push_back(arena->Acquire(kRequest));
    ASSERT_NE(out.back(), nullptr) << i;
  }
  EXPECT_EQ(arena->Acquire(kRequest), nullptr);
  EXPECT_NE(arena->Acquire(1), nullptr) << "the last page";
  EXPECT_EQ(arena->Acquire(1), nullptr);
  EXPECT_EQ(arena->out_bytes(), arena->capacity_bytes());
  // Two neighbours that came back are one run, taken by what only both can hold.
  arena->Release(out[7], kRequest);
  arena->Release(out[9], kRequest);
  EXPECT_EQ(arena->Acquire(kRequest + kPage), nullptr) << "one is out between them";
  arena->Release(out[8], kRequest);
  EXPECT_EQ(arena->Acquire(3 * kRequest), out[7]);
}

TEST(BufferArenaTest, ARunHardlyLongEnoughIsFoundAmongShorterOnesOfItsClass) {
  constexpr uint64_t kPage = 4096;
  Result<BufferArena> arena = BufferArena::Create(100 * kPage);
  ASSERT_TRUE(arena.ok());
  // Of 16 to 19 pages: one class. Pages that stay out keep them apart.
  std::byte* const nineteen = arena->Acquire(19 * kPage);
  ASSERT_NE(arena->Acquire(kPage), nullptr);
  std::byte* const sixteen = arena->Acquire(16 * kPage);
  ASSERT_NE(arena->Acquire(64 * kPage), nullptr);
  arena->Release(nineteen, 19 * kPage);
  arena->Release(sixteen, 16 * kPage);  // filed last, looked at first
  EXPECT_EQ(arena->Acquire(18 * kPage), nineteen);
  EXPECT_EQ(arena->Acquire(17 * kPage), nullptr);
  EXPECT_EQ(arena->Acquire(16 * kPage), sixteen);
}

TEST(BufferArenaTest, ARequestLargerThanAllOfItWaitsUntilEverythingIsBack) {
  Result<BufferArena> arena = BufferArena::Create(8192);
  ASSERT_TRUE(arena.ok());
  std::byte* small = arena->Acquire(512);
  EXPECT_EQ(arena->Acquire(100'000), nullptr);
  arena->Release(small, 512);
  std::byte* large = arena->Acquire(100'000);
  ASSERT_NE(large, nullptr);
  std::memset(large, 1, 100'000);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large) % 4096, 0u);
  arena->Release(large, 100'000);
  EXPECT_EQ(arena->out_bytes(), 0u);
}

TEST(BufferArenaTest, TheExtraLiesBehindWhatIsHandedOutAndKeepsNobodyWaiting) {
  constexpr uint64_t kCapacity = 64 * 1024;
  auto arena = BufferArena::Create(kCapacity, 3 * 4096);
  ASSERT_TRUE(arena.ok());
  EXPECT_EQ(arena->memory().size(), kCapacity + 3 * 4096);
  EXPECT_EQ(arena->extra(), arena->memory().data() + kCapacity);
  arena->extra()[3 * 4096 - 1] = std::byte{1};
  std::byte* const whole = arena->Acquire(kCapacity);
  EXPECT_EQ(whole, arena->memory().data());
  arena->Release(whole, kCapacity);
  std::byte* const larger = arena->Acquire(2 * kCapacity);
  EXPECT_NE(larger, nullptr);
  arena->Release(larger, 2 * kCapacity);
}

TEST(BufferArenaTest, RandomBuffersAreAlignedInsideAndNeverOverlap) {
  constexpr uint64_t kCapacity = 1 << 20;
  Result<BufferArena> arena = BufferArena::Create(kCapacity);
  ASSERT_TRUE(arena.ok());
  std::mt19937_64 random(7);
  std::map<std::byte*, uint64_t> out;
  for (int step = 0; step < 20'000; ++step) {
    if (out.empty() || random() % 2 == 0) {
      const uint64_t bytes = 1 + random() % 70'000;
      std::byte* buffer = arena->Acquire(bytes);
      if (buffer == nullptr) continue;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer) % 4096, 0u);
      EXPECT_GE(buffer, arena->memory().data());
      EXPECT_LE(buffer + bytes, arena->memory().data() + kCapacity);
      const auto next = out.lower_bound(buffer);
      if (next != out.end()) {
        EXPECT_LE(buffer + bytes, next->first);
      }
      if (next != out.begin()) {
        const auto before = std::prev(next);
        EXPECT_LE(before->first + before->second, buffer);
      }
      out[buffer] = bytes;
    } else {
      auto victim = out.begin();
      std::advance(victim, random() % out.size());
      arena->Release(victim->first, victim->second);
      out.erase(victim);
    }
  }
  for (const auto& [buffer, bytes] : out) arena->Release(buffer, bytes);
  EXPECT_EQ(arena->out_bytes(), 0u);
  EXPECT_NE(arena->Acquire(kCapacity), nullptr) << "one piece again";
}

}  // namespace
}  // namespace blktape
