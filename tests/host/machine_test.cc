#include "host/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <time.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "base/units.h"
#include "format/trace.pb.h"

namespace blktape {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kSecond = kNanosPerSecond;
constexpr int64_t kMilli = kNanosPerMilli;

ClockReading At(int64_t monotonic_ns, int64_t boot_ns, int64_t wall_ns) {
  return {monotonic_ns, boot_ns, wall_ns};
}

TEST(ClockWatchTest, ClocksThatRunTogetherSayNothing) {
  ClockWatch watch(At(0, 0, 1000 * kSecond));
  EXPECT_THAT(watch.OnReading(At(kSecond, kSecond, 1001 * kSecond)), IsEmpty());
}

TEST(ClockWatchTest, TimeThatPassedWithoutTheMonotonicClockWasASuspend) {
  ClockWatch watch(At(0, 0, 1000 * kSecond));
  const auto marks = watch.OnReading(At(kSecond, 3601 * kSecond, 4601 * kSecond));
  ASSERT_THAT(marks, SizeIs(1));
  EXPECT_EQ(marks[0].kind(), proto::SUSPEND);
  EXPECT_EQ(marks[0].at_ns(), kSecond);
  EXPECT_EQ(marks[0].value_ns(), 3600 * kSecond);
  EXPECT_THAT(watch.OnReading(At(2 * kSecond, 3602 * kSecond, 4602 * kSecond)), IsEmpty());
}

TEST(ClockWatchTest, AWallClockSetBackIsAStepByThatMuch) {
  ClockWatch watch(At(0, 0, 1000 * kSecond));
  const auto marks = watch.OnReading(At(kSecond, kSecond, 401 * kSecond));
  ASSERT_THAT(marks, SizeIs(1));
  EXPECT_EQ(marks[0].kind(), proto::WALL_CLOCK_STEP);
  EXPECT_EQ(marks[0].value_ns(), -600 * kSecond);
}

TEST(ClockWatchTest, ASuspendAfterWhichTheClockWasCorrectedIsBoth) {
  ClockWatch watch(At(0, 0, 1000 * kSecond));
  const auto marks = watch.OnReading(At(kSecond, 61 * kSecond, 1063 * kSecond));
  ASSERT_THAT(marks, SizeIs(2));
  EXPECT_EQ(marks[0].value_ns(), 60 * kSecond);
  EXPECT_EQ(marks[1].value_ns(), 2 * kSecond);
}

TEST(ClockWatchTest, AClockThatIsBeingSlewedDoesNotStep) {
  ClockWatch watch(At(0, 0, 1000 * kSecond));
  EXPECT_THAT(watch.OnReading(At(kSecond, kSecond, 1001 * kSecond + 83 * kMilli)), IsEmpty());
}

class LocalTimeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // Central Europe by rule, so that no time zone data is needed: +1 h, +2 h in summer.
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
  }
  void TearDown() override {
    unsetenv("TZ");
    tzset();
  }
};

// 2026-10-24 22:30:00 UTC is 2026-10-25 00:30 in summer time; that day has 25 hours.
constexpr int64_t kDayOfTheChangeNs = 1'792'881'000 * kSecond;

TEST_F(LocalTimeTest, TheOffsetFollowsTheSeason) {
  EXPECT_EQ(UtcOffset(kDayOfTheChangeNs), "+02:00");
  EXPECT_EQ(UtcOffset(kDayOfTheChangeNs + 24 * 3600 * kSecond), "+01:00");
}

TEST_F(LocalTimeTest, AFileIsNamedByLocalTime) {
  EXPECT_EQ(LocalTimeName(kDayOfTheChangeNs), "2026-10-25T00-30-00");
}

TEST_F(LocalTimeTest, TheDayOfTheChangeHas25Hours) {
  EXPECT_EQ(NextLocalMidnight(kDayOfTheChangeNs), kDayOfTheChangeNs + (24 * 3600 + 1800) * kSecond);
  const int64_t midnight_ns = kDayOfTheChangeNs - 1800 * kSecond;
  EXPECT_EQ(NextLocalMidnight(midnight_ns), midnight_ns + 25 * 3600 * kSecond);
  EXPECT_EQ(NextLocalMidnight(midnight_ns - 1), midnight_ns);
}

TEST(UtcOffsetTest, WestOfGreenwichIsNegative) {
  setenv("TZ", "NST3:30", 1);
  tzset();
  EXPECT_EQ(UtcOffset(0), "-03:30");
  unsetenv("TZ");
  tzset();
}

// A hierarchy of control groups and the file that says which is ours.
class ControlGroupTest : public ::testing::Test {
 protected:
  ControlGroupTest() : root_(std::filesystem::path(::testing::TempDir()) / "groups") {
    std::filesystem::create_directories(root_ / "system.slice/a.service");
    Write("self", "3:cpu:/elsewhere\n0::/system.slice/a.service\n");
  }
  ~ControlGroupTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(root_ / name) << text;
  }
  std::optional<uint64_t> Bytes() const {
    return ControlGroupMemoryBytes(root_.string(), (root_ / "self").string());
  }

  std::filesystem::path root_;
};

TEST_F(ControlGroupTest, AllowsWhatTheTightestOfThemAllows) {
  EXPECT_EQ(Bytes(), std::nullopt);
  Write("system.slice/a.service/memory.max", "max\n");
  EXPECT_EQ(Bytes(), std::nullopt);
  Write("system.slice/a.service/memory.max", "134217728\n");
  EXPECT_EQ(Bytes(), 134217728u);
  Write("system.slice/memory.max", "67108864\n");
  EXPECT_EQ(Bytes(), 67108864u);
  Write("system.slice/memory.max", "268435456\n");
  EXPECT_EQ(Bytes(), 134217728u);
}

TEST_F(ControlGroupTest, OfVersionOneAloneIsNotAsked) {
  Write("self", "3:memory:/system.slice/a.service\n");
  Write("system.slice/a.service/memory.max", "134217728\n");
  EXPECT_EQ(Bytes(), std::nullopt);
  Write("self", "0::/\n");
  EXPECT_EQ(Bytes(), std::nullopt) << "the root has no limit";
}

}  // namespace
}  // namespace blktape
