#include "bench/host_check.h"

#include <atomic>
#include <string>
#include <thread>

#include "base/status.h"
#include "base/units.h"
#include "gtest/gtest.h"

namespace blktape {
namespace {

TEST(StopWatcherTest, AGapBetweenReadingsIsAStopFromAHundredMicrosecondsOn) {
  StopWatcher watcher;
  watcher.Read(1'000);
  watcher.Read(100'999);  // 99,999 ns: none
  watcher.Read(200'999);  // 100,000 ns
  watcher.Pause();
  watcher.Read(900'000'000);  // slept by its own will
  watcher.Read(903'000'000);
  EXPECT_EQ(watcher.stops(), 2u);
  EXPECT_EQ(watcher.longest_ns(), 3'000'000);
  EXPECT_EQ(watcher.watched_ns(), 99'999 + 100'000 + 3'000'000);
}

TEST(HostCheckTest, SaysWhichDrivesItCanJudgeAndHowOftenItStops) {
  HostCheck check;
  check.own_cost_ns = 400;  // 5 % of 8 us
  check.watched_ns = 4 * kNanosPerSecond;
  EXPECT_EQ(check.Sentence(),
            "This host can judge drives slower than 8.00 us an I/O; its CPUs did not stop in 4.00 "
            "s.");
  check.stops = 2;
  check.longest_stop_ns = 2'100'000;
  EXPECT_EQ(check.Sentence(),
            "This host can judge drives slower than 8.00 us an I/O; its CPUs stop 30 times a "
            "minute, for at most 2.10 ms.");
  check.wake_ns = 4'100;
  EXPECT_EQ(check.Sentence(),
            "This host can judge drives slower than 8.00 us an I/O; its CPUs stop 30 times a "
            "minute, for at most 2.10 ms, and wake from idle in 4.10 us.");
  check.stops = 0;
  EXPECT_EQ(check.Sentence(),
            "This host can judge drives slower than 8.00 us an I/O; its CPUs did not stop in 4.00 "
            "s and wake from idle in 4.10 us.");
}

TEST(HostCheckTest, TimesAWakeUpWhereThereIsAnotherCpu) {
  const std::atomic<bool> stop = false;
  const Result<HostCheck> check = CheckHost(200 * kNanosPerMilli, stop);
  ASSERT_TRUE(check.ok()) << check.status().message();
  EXPECT_EQ(check->wake_ns.has_value(), std::thread::hardware_concurrency() > 1);
  EXPECT_GT(check->wake_ns.value_or(1), 0);
}

}  // namespace
}  // namespace blktape
