#include "replay/progress_meter.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace blktape {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1000 * kMs;

// A tenth of 1000 I/Os at once, a pause, and the others 1 ms apart in the last second of ten.
ExpectedTimes WithAPause() {
  ExpectedTimes times;
  for (int i = 0; i < 100; ++i) times.Add(0);
  for (int i = 0; i < 900; ++i) times.Add(9 * kSecond + (i + 101) * kMs);
  return times;
}

TEST(ExpectedTimesTest, EachIoAndWhatIsBeyondTheLast) {
  const ExpectedTimes times = WithAPause();
  EXPECT_EQ(times.total_ns(), 10 * kSecond);
  EXPECT_EQ(times.At(0), 0);
  EXPECT_EQ(times.At(99), 0);
  EXPECT_EQ(times.At(100), 9 * kSecond + 101 * kMs);
  EXPECT_EQ(times.At(999), 10 * kSecond);
  EXPECT_EQ(times.At(1000), 10 * kSecond);
  EXPECT_TRUE(ExpectedTimes().empty());
  EXPECT_EQ(ExpectedTimes().At(5), 0);
}

TEST(ExpectedTimesTest, OneBeforeTheOneBeforeItIsExpectedWithIt) {
  ExpectedTimes times;
  for (const int64_t at_ns : {5, 3, 7}) times.Add(at_ns);
  EXPECT_EQ(times.At(1), 5);
  EXPECT_EQ(times.At(2), 7);
}

// Of I/Os at equal distances the straight line is exact, also behind the last that is kept.
TEST(ExpectedTimesTest, OfALongTraceSomeAreKept) {
  for (const int64_t count : {4096, 4097, 8193, 100'000, 100'001}) {
    ExpectedTimes times;
    for (int64_t i = 0; i < count; ++i) times.Add(i * kMs);
    for (int64_t i = 0; i < count; i += 7) {
      ASSERT_NEAR(times.At(i), i * kMs, 1) << i << " of " << count;
    }
    EXPECT_EQ(times.At(count - 1), (count - 1) * kMs);
  }
}

TEST(ProgressMeterTest, APauseOfAClosedReplayPassesByTheClock) {
  ProgressMeter meter({.limit_ns = {}, .schedule_ns = {}, .expected = WithAPause(), .ios = 1000});
  // The first tenth is issued at once; half of the time is over when half of it has passed.
  EXPECT_DOUBLE_EQ(meter.Fraction(1 * kSecond, 100), 0.1);
  EXPECT_DOUBLE_EQ(meter.Fraction(5 * kSecond, 100), 0.5);
  EXPECT_DOUBLE_EQ(meter.Fraction(9 * kSecond, 100), 0.9);
  // It never runs ahead of the next I/O, which a slow drive holds up at 9.101 s.
  EXPECT_DOUBLE_EQ(meter.Fraction(20 * kSecond, 100), 0.9101);
  EXPECT_DOUBLE_EQ(meter.Fraction(21 * kSecond, 1000), 1);
}

TEST(ProgressMeterTest, ADriveThatIsQuickerThanTheRecordedOneIsFartherThanTheClock) {
  ProgressMeter meter({.limit_ns = {}, .schedule_ns = {}, .expected = WithAPause(), .ios = {}});
  // I/O 499 of 0 to 999 is expected at 9.5 s.
  EXPECT_DOUBLE_EQ(meter.Fraction(1 * kSecond, 500), 0.95);
}

TEST(ProgressMeterTest, ATimedReplayGoesByItsScheduleAlone) {
  ProgressMeter meter({.limit_ns = {}, .schedule_ns = 8 * kSecond, .expected = {}, .ios = 1000});
  EXPECT_DOUBLE_EQ(meter.Fraction(2 * kSecond, 900), 0.25);
  EXPECT_DOUBLE_EQ(meter.Fraction(9 * kSecond, 900), 1);
}

TEST(ProgressMeterTest, AtMaximumSpeedOnlyTheShareOfTheIosIsKnown) {
  ProgressMeter meter({.limit_ns = {}, .schedule_ns = {}, .expected = {}, .ios = 1000});
  EXPECT_DOUBLE_EQ(meter.Fraction(2 * kSecond, 250), 0.25);
  ProgressMeter unknown({});
  EXPECT_EQ(unknown.Fraction(2 * kSecond, 250), 0);
}

TEST(ProgressMeterTest, TheEndThatComesFirstCounts) {
  ProgressMeter meter({.limit_ns = 10 * kSecond, .schedule_ns = {}, .expected = {}, .ios = 1000});
  EXPECT_DOUBLE_EQ(meter.Fraction(5 * kSecond, 100), 0.5);
  EXPECT_DOUBLE_EQ(meter.Fraction(6 * kSecond, 900), 0.9);
}

}  // namespace
}  // namespace blktape
