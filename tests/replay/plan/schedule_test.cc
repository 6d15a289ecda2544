#include "replay/plan/schedule.h"

#include <gtest/gtest.h>

#include "tests/replay/plan/fake_records.h"

namespace blktape {
namespace {

TEST(ScheduleTest, AtOriginalSpeedDueTimesAreTheRecordedDistancesFromTheFirst) {
  Schedule schedule(1.0, std::nullopt);
  EXPECT_EQ(schedule.Advance(Read(1'000'000'007, {})), 0);
  EXPECT_EQ(schedule.Advance(Read(1'000'000'008, {})), 1);
  EXPECT_EQ(schedule.Advance(Read(9'007'199'254'740'993 + 1'000'000'007, {})),
            9'007'199'254'740'993)
      << "exact beyond what a double holds";
}

TEST(ScheduleTest, SpeedFourQuartersAndRoundsToTheNearest) {
  Schedule schedule(4.0, std::nullopt);
  EXPECT_EQ(schedule.Advance(Read(100, {})), 0);
  EXPECT_EQ(schedule.Advance(Read(500, {})), 100);
  EXPECT_EQ(schedule.Advance(Read(103, {})), 1) << "0.75 ns";
}

TEST(ScheduleTest, AnIdleGapRunsFromTheLastCompletionToTheNextArrivalAndIsCutToTheCap) {
  Schedule schedule(1.0, /*idle_cap_ns=*/25);
  EXPECT_EQ(schedule.Advance(Read(0, /*complete_ns=*/90)), 0);
  EXPECT_EQ(schedule.Advance(Read(10, /*complete_ns=*/40)), 10);
  // In flight until 90; idle from 90 to 200, that is 110, of which 85 are cut.
  EXPECT_EQ(schedule.Advance(Read(200, 210)), 115);
  EXPECT_EQ(schedule.idle_cut_ns(), 85);
  EXPECT_EQ(schedule.last_cut_ns(), 85);
  // Idle from 210 to 235: exactly the cap.
  EXPECT_EQ(schedule.Advance(Read(235, 236)), 150);
  EXPECT_EQ(schedule.idle_cut_ns(), 85);
  EXPECT_EQ(schedule.last_cut_ns(), 0);
}

TEST(ScheduleTest, WithoutCompletionsTheGapRunsFromArrivalToArrival) {
  Schedule schedule(2.0, /*idle_cap_ns=*/20);
  EXPECT_EQ(schedule.Advance(Read(0, {})), 0);
  EXPECT_EQ(schedule.Advance(Read(100, {})), 10) << "cut to 20, then halved";
}

TEST(ScheduleTest, NothingIsDueFartherThanSumsOfTimesFit) {
  constexpr int64_t kMost = int64_t{1} << 62;
  Schedule schedule(1.0, std::nullopt);
  EXPECT_EQ(schedule.Advance(Read(INT64_MIN, {})), 0);
  EXPECT_EQ(schedule.Advance(Read(INT64_MIN + kMost - 1, {})), kMost - 1);
  EXPECT_EQ(schedule.Advance(Read(INT64_MAX, {})), kMost);
  Schedule slow(0.001, std::nullopt);
  EXPECT_EQ(slow.Advance(Read(INT64_MAX, {})), 0);
  EXPECT_EQ(slow.Advance(Read(INT64_MAX - (int64_t{1} << 60), {})), -kMost) << "2^60 by 1000";
  EXPECT_EQ(slow.Advance(Read(INT64_MIN, {})), -kMost);
  Schedule capped(1.0, /*idle_cap_ns=*/25);
  EXPECT_EQ(capped.Advance(Read(INT64_MIN, {})), 0);
  EXPECT_EQ(capped.Advance(Read(INT64_MAX, {})), 25);
  EXPECT_EQ(capped.idle_cut_ns(), INT64_MAX - 25);
}

TEST(ScheduleTest, ARecordWithoutATimeIsDueWithTheOneBeforeIt) {
  Schedule schedule(1.0, std::nullopt);
  schedule.Advance(Read(10, {}));
  schedule.Advance(Read(30, {}));
  IoRecord timeless = Read(0, {});
  timeless.queue_ns.reset();
  timeless.issue_ns.reset();
  EXPECT_EQ(schedule.Advance(timeless), 20);
}

TEST(ScheduleTest, ARecordWithoutAQueueTimeCountsFromItsIssue) {
  Schedule schedule(1.0, std::nullopt);
  schedule.Advance(Read(10, {}));
  IoRecord io = Read(0, {});
  io.queue_ns.reset();
  io.issue_ns = 17;
  EXPECT_EQ(schedule.Advance(io), 7);
}

}  // namespace
}  // namespace blktape
