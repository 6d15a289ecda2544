#include "replay/issue/turn.h"

#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace blktape {
namespace {

TEST(TurnTest, OnlyOneHasIt) {
  Turn turn;
  turn.Take();
  EXPECT_FALSE(turn.TryTake());
  turn.GiveBack(/*awaited_ns=*/70);
  EXPECT_TRUE(turn.TryTake());
  EXPECT_FALSE(turn.TryTake());
  turn.GiveBack();
  EXPECT_TRUE(turn.TryTake());
}

TEST(TurnTest, WhatTheFirstWaitsForIsToldWhileItWaitsOnly) {
  Turn turn;
  EXPECT_EQ(turn.awaited_ns(), Turn::kNothing);
  turn.Take();
  EXPECT_EQ(turn.awaited_ns(), Turn::kNothing);
  turn.GiveBack(70);
  EXPECT_EQ(turn.awaited_ns(), 70);
  // The other leaves it as it is, unless it knows better.
  ASSERT_TRUE(turn.TryTake());
  turn.GiveBack();
  EXPECT_EQ(turn.awaited_ns(), 70);
  ASSERT_TRUE(turn.TryTake());
  turn.GiveBack(90);
  EXPECT_EQ(turn.awaited_ns(), 90);
}

TEST(TurnTest, EachSignOfLifeOfTheFirstIsSeen) {
  Turn turn;
  const uint64_t before = turn.beat();
  turn.Take();
  const uint64_t taken = turn.beat();
  EXPECT_NE(taken, before);
  turn.Beat();
  EXPECT_NE(turn.beat(), taken);
}

// Each adds to a number that is no atomic one: with two at once some additions would be lost.
TEST(TurnTest, TheFirstWaitsForTheOtherAndNothingIsLost) {
  constexpr int kRounds = 20'000;
  Turn turn;
  int both = 0;
  int other = 0;
  std::atomic<bool> ended = false;
  std::thread reserve([&] {
    while (!ended.load()) {
      if (!turn.TryTake()) {
        std::this_thread::yield();
        continue;
      }
      ++both;
      ++other;
      turn.GiveBack();
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    turn.Take();
    ++both;
    turn.GiveBack(Turn::kNothing);
  }
  ended.store(true);
  reserve.join();
  EXPECT_EQ(both, kRounds + other);
}

// Longer than it waits awake.
TEST(TurnTest, TheFirstAlsoOutwaitsOneThatHasItForLong) {
  Turn turn;
  ASSERT_TRUE(turn.TryTake());
  std::atomic<bool> given_back = false;
  std::thread reserve([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    given_back.store(true);
    turn.GiveBack();
  });
  turn.Take();
  EXPECT_TRUE(given_back.load());
  reserve.join();
}

int64_t CpuTimeNs() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// A real-time thread that does not sleep would keep the other, on the same CPU, from giving back.
TEST(TurnTest, TheFirstSleepsWhileItOutwaitsTheOther) {
  constexpr int64_t kHeldNs = 200'000'000;
  Turn turn;
  ASSERT_TRUE(turn.TryTake());
  std::thread reserve([&] {
    std::this_thread::sleep_for(std::chrono::nanoseconds(kHeldNs));
    turn.GiveBack();
  });
  const int64_t before_ns = CpuTimeNs();
  turn.Take();
  EXPECT_LT(CpuTimeNs() - before_ns, kHeldNs / 2);
  reserve.join();
}

}  // namespace
}  // namespace blktape
