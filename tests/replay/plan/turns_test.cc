#include "replay/plan/turns.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "replay/plan/by_chance.h"

namespace blktape {
namespace {

constexpr int64_t kUs = 1'000;
constexpr uint64_t kProgram = 5;

class TurnsTest : public testing::Test {
 protected:
  void Begin(int64_t at_us, int64_t complete_us, uint64_t program = kProgram) {
    turns_.Begin(program, at_us * kUs, complete_us * kUs);
  }
  void End(int thread, int64_t at_us, uint32_t slot = 7) {
    uint32_t* const kept = turns_.End(kProgram, at_us * kUs, &idle_[thread]);
    ASSERT_NE(kept, nullptr);
    *kept = slot;
  }
  bool Next(int thread, int64_t at_us) {
    return turns_.Next(kProgram, idle_[thread], at_us * kUs) != Turns::kNone;
  }

  Turns turns_;
  std::array<Turns::Idle, 3> idle_;
};

// Two threads in turns, 1 ms each and nothing between. While one was idle, for 1 ms, the other was
// busy but for its first 100 us, so that by chance 900 / 1000 of an I/O would have begun beside it:
// in 1,024ths 921. With none beside, m is to be 16 (m^2 >= 16 m): 16 * 1024 / 921 = 17.8.
TEST_F(TurnsTest, AreKnownOnceItIsNoChance) {
  int counted = 0;
  for (int i = 0; i < 30; ++i) {
    if (i >= 2) EXPECT_EQ(Next(i % 2, i * 1'000), ++counted >= 18) << i;
    Begin(i * 1'000, (i + 1) * 1'000);
    End(i % 2, (i + 1) * 1'000);
  }
}

// One that takes 40 us hands out what begins in its first 10 us; the other 30 of 60 us are busy.
TEST_F(TurnsTest, OfShortIosAQuarterIsTogether) {
  int counted = 0;
  for (int i = 0; i < 60; ++i) {
    if (i >= 2) EXPECT_EQ(Next(i % 2, i * 50), ++counted >= 32) << i;
    Begin(i * 50, i * 50 + 40);
    End(i % 2, i * 50 + 40);
  }
}

// A thread that begins in the middle of another one's I/O each time, and that one in turn: beside
// as often as by chance, or more often.
TEST_F(TurnsTest, AreNotTakenByWhoBeginsBesideOthers) {
  Begin(0, 1'000);
  End(0, 1'000);
  for (int i = 1; i < 200; ++i) {
    Begin(i * 1'000, i * 1'000 + 900);
    EXPECT_FALSE(Next(0, i * 1'000 + 500)) << i;
    Begin(i * 1'000 + 500, i * 1'000 + 950);
    End(1, i * 1'000 + 900);
    End(0, i * 1'000 + 950);
  }
}

TEST_F(TurnsTest, OneThatGivesWayIsForgotten) {
  Begin(0, 1'000);
  End(0, 1'000, /*slot=*/9);
  EXPECT_EQ(turns_.Begin(kProgram + kKnownPrograms, 0, 1), 9u);
  Turns::Idle idle;
  EXPECT_EQ(turns_.End(kProgram, 2, &idle), nullptr);
  EXPECT_FALSE(Next(0, 2'000));
}

}  // namespace
}  // namespace blktape
