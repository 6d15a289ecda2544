#include "replay/issue/busy_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/units.h"

namespace blktape {
namespace {

using testing::ElementsAre;

constexpr int64_t kMs = kNanosPerMilli;

TEST(BusyTimeTest, OfAShortRunTheShareIsThatOfTheWhole) {
  BusyTime busy({});
  busy.Start(0);
  busy.Worked();
  busy.NextRound(30 * kMs);
  busy.NextRound(40 * kMs);  // a round without work
  EXPECT_DOUBLE_EQ(busy.ShareMax(40 * kMs), 0.75);
}

TEST(BusyTimeTest, OfALongRunItIsThatOfTheBusiestSecond) {
  BusyTime busy({});
  busy.Start(0);
  busy.NextRound(900 * kMs);
  busy.Worked();
  busy.NextRound(1'000 * kMs);  // 0.1 of the first second
  busy.NextRound(1'400 * kMs);
  busy.Worked();
  busy.NextRound(2'000 * kMs);  // 0.6 of the second one
  busy.Worked();
  busy.NextRound(2'500 * kMs);  // which is half a second
  EXPECT_DOUBLE_EQ(busy.ShareMax(2'500 * kMs), 0.6);
}

TEST(BusyTimeTest, WaitingForACompletionIsIdleThoughItBringsWork) {
  BusyTime busy({});
  busy.Start(0);
  busy.Awaited(10 * kMs, 90 * kMs);
  busy.Worked();
  busy.NextRound(100 * kMs);
  EXPECT_DOUBLE_EQ(busy.ShareMax(100 * kMs), 0.2);
}

// Below a twentieth of a tenth of a second it is saturated; each change is told once.
TEST(BusyTimeTest, AThreadThatSleepsLessThanATwentiethNeverSleeps) {
  std::vector<bool> told;
  BusyTime busy([&](bool never_sleeps) { told.push_back(never_sleeps); });
  busy.Start(0);
  busy.Slept(5 * kMs);
  busy.NextRound(100 * kMs);
  EXPECT_THAT(told, ElementsAre());
  busy.Slept(4 * kMs);
  busy.NextRound(200 * kMs);
  busy.NextRound(300 * kMs);
  EXPECT_THAT(told, ElementsAre(true));
  busy.Slept(5 * kMs);
  busy.NextRound(400 * kMs);
  EXPECT_THAT(told, ElementsAre(true, false));
}

}  // namespace
}  // namespace blktape
