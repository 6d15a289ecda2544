#include "replay/plan/wakes.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "replay/plan/by_chance.h"

namespace blktape {
namespace {

constexpr int64_t kUs = 1'000;
constexpr uint64_t kProgram = 5;

class WakesTest : public testing::Test {
 protected:
  int64_t End(int64_t at_us) { return wakes_.End(/*machine=*/0, last_ns_ = at_us * kUs); }
  // Its thread's last I/O was complete at `since_us`, when End() returned `after_ns`.
  bool Next(int64_t since_us, int64_t after_ns, int64_t at_us) {
    wakes_.Next(kProgram, 0, since_us * kUs, after_ns, last_ns_, at_us * kUs);
    return wakes_.AreWoken(kProgram);
  }

  Wakes wakes_{2};
  int64_t last_ns_ = 0;
};

// Of 10,200 us since its own completion the first 200 do not count; 100 of the rest are just after
// another's: by chance 10 of 1,024. Alone 5 of 5 are less than 4 standard deviations of at least 1
// (5 - 0.05 > 4), 4 are not.
TEST_F(WakesTest, AreKnownOnceItIsNoChance) {
  for (int i = 0; i < 20; ++i) {
    const int64_t after_ns = End(i * 20'000);
    End(i * 20'000 + 10'100);
    EXPECT_EQ(Next(i * 20'000, after_ns, i * 20'000 + 10'200), i >= 4) << i;
  }
}

// Half of the time is just after a completion: 0.5 an I/O by chance, 1 in fact. (o - m)^2 >= 16 m
// with m = o / 2: o >= 32.
TEST_F(WakesTest, AmidManyCompletionsItTakesMore) {
  int64_t at_us = 0;
  for (int i = 0; i < 60; ++i) {
    const int64_t since_us = at_us;
    const int64_t after_ns = End(at_us);
    // From 200 us on: 200 us without, 200 us after one.
    for (int j = 0; j < 5; ++j) End(at_us += 400);
    EXPECT_EQ(Next(since_us, after_ns, at_us + 200), i + 1 >= 32) << i;
    at_us += 10'000;
  }
}

// Those that begin at any time do so by chance.
TEST_F(WakesTest, AreNotWokenWhoBeginsAtAnyTime) {
  for (int i = 0; i < 400; ++i) {
    const int64_t at_us = i * 20'000;
    const int64_t after_ns = End(at_us);
    End(at_us + 5'000);
    // 200 of the 9,800 us that count: 2 of 100 begin then.
    EXPECT_FALSE(Next(at_us, after_ns, i % 50 == 0 ? at_us + 5'100 : at_us + 10'000)) << i;
  }
}

TEST_F(WakesTest, AnotherMachinesCompletionsAreNotCounted) {
  const int64_t after_ns = End(0);
  for (int i = 1; i < 100; ++i) wakes_.End(/*machine=*/1, i * 100 * kUs);
  EXPECT_EQ(End(10'000) - after_ns, 200 * kUs);
}

// Completions within 200 us of each other: their time is counted once.
TEST_F(WakesTest, WhatOverlapsIsCountedOnce) {
  const int64_t after_ns = End(0);
  EXPECT_EQ(End(150) - after_ns, 150 * kUs);
  EXPECT_EQ(End(120) - after_ns, 150 * kUs);  // told late
}

TEST_F(WakesTest, AProgramThatGaveWayBeginsAnew) {
  int64_t at_us = 0;
  for (int i = 0; i < 10; ++i, at_us += 20'000) {
    const int64_t after_ns = End(at_us);
    End(at_us + 10'100);
    Next(at_us, after_ns, at_us + 10'200);
  }
  EXPECT_TRUE(wakes_.AreWoken(kProgram));
  EXPECT_FALSE(wakes_.AreWoken(kProgram + kKnownPrograms));
  wakes_.Next(kProgram + kKnownPrograms, 0, at_us * kUs, 0, last_ns_, (at_us + 500) * kUs);
  EXPECT_FALSE(wakes_.AreWoken(kProgram));
}

}  // namespace
}  // namespace blktape
