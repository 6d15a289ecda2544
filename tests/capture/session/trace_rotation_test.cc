#include "capture/session/trace_rotation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <time.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/units.h"

namespace blktape {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace fs = std::filesystem;

constexpr int64_t kHourNs = 3600 * kNanosPerSecond;
// 2026-10-24 22:30:00 UTC: half past midnight in Central Europe, on the day of 25 hours.
constexpr int64_t kHalfPastMidnightNs = 1'792'881'000 * kNanosPerSecond;

class TraceRotationTest : public ::testing::Test {
 protected:
  TraceRotationTest() : folder_((fs::path(::testing::TempDir()) / "rotation").string()) {
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~TraceRotationTest() override {
    fs::remove_all(folder_);
    unsetenv("TZ");
    tzset();
  }

  void Add(const std::string& name, size_t bytes, int age_minutes) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << std::string(bytes, 'x');
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::minutes(age_minutes));
  }
  std::vector<std::string> Names(const std::vector<std::string>& paths) const {
    std::vector<std::string> names;
    for (const std::string& path : paths) names.push_back(fs::path(path).filename().string());
    return names;
  }

  std::string folder_;
};

TEST_F(TraceRotationTest, ADayEndsAtLocalMidnight) {
  RotationOptions options;
  options.every_ns = 24 * kHourNs;
  RotationClock clock(options, kHalfPastMidnightNs);
  const int64_t midnight_ns = kHalfPastMidnightNs + 24 * kHourNs + kHourNs / 2;
  EXPECT_FALSE(clock.Due(midnight_ns - 1, 0));
  EXPECT_TRUE(clock.Due(midnight_ns, 0));
  clock.Begin(midnight_ns);
  EXPECT_FALSE(clock.Due(midnight_ns + 24 * kHourNs - 1, 0));
  EXPECT_TRUE(clock.Due(midnight_ns + 24 * kHourNs, 0));
}

TEST_F(TraceRotationTest, OtherTimesCountFromTheBeginningOfTheFile) {
  RotationOptions options;
  options.every_ns = kHourNs;
  const RotationClock clock(options, kHalfPastMidnightNs);
  EXPECT_FALSE(clock.Due(kHalfPastMidnightNs + kHourNs - 1, 0));
  EXPECT_TRUE(clock.Due(kHalfPastMidnightNs + kHourNs, 0));
}

TEST_F(TraceRotationTest, AFileOfFullSizeIsOverWhateverTheTime) {
  RotationOptions options;
  options.at_bytes = 1000;
  const RotationClock clock(options, kHalfPastMidnightNs);
  EXPECT_FALSE(clock.Due(kHalfPastMidnightNs + 10'000 * kHourNs, 999));
  EXPECT_TRUE(clock.Due(kHalfPastMidnightNs, 1000));
}

TEST_F(TraceRotationTest, NamesHoldDiskAndLocalTimeAndNeverMeetAnother) {
  const std::string first = RotatedPath(folder_, {"nvme0n1"}, kHalfPastMidnightNs);
  EXPECT_EQ(first, folder_ + "/nvme0n1_2026-10-25T00-30-00.tape");
  std::ofstream(first) << "x";
  EXPECT_EQ(RotatedPath(folder_, {"nvme0n1"}, kHalfPastMidnightNs),
            folder_ + "/nvme0n1_2026-10-25T00-30-00_2.tape");
  EXPECT_GT(RotatedPath(folder_, {"nvme0n1"}, kHalfPastMidnightNs), first) << "as ls lists them";
  EXPECT_EQ(RotatedPath(folder_, {"sda", "sdb"}, kHalfPastMidnightNs),
            folder_ + "/2disks_2026-10-25T00-30-00.tape");
}

TEST_F(TraceRotationTest, TheOldestFinishedTracesMakeRoom) {
  Add("sda_2026-10-23T00-00-00.tape", 400, 30);
  Add("sda_2026-10-24T00-00-00.tape", 400, 20);
  Add("sda_2026-10-25T00-00-00.tape", 400, 10);
  EXPECT_THAT(RemoveOldTraces(folder_, "sda", 1200, 0), IsEmpty());
  EXPECT_THAT(Names(RemoveOldTraces(folder_, "sda", 1199, 0)),
              ElementsAre("sda_2026-10-23T00-00-00.tape"));
  EXPECT_TRUE(fs::exists(folder_ + "/sda_2026-10-24T00-00-00.tape"));
}

TEST_F(TraceRotationTest, TheTraceBeingWrittenTakesItsShareOfTheRoom) {
  Add("sda_2026-10-23T00-00-00.tape", 400, 30);
  Add("sda_2026-10-24T00-00-00.tape", 400, 20);
  EXPECT_THAT(RemoveOldTraces(folder_, "sda", 1200, 400), IsEmpty());
  EXPECT_THAT(Names(RemoveOldTraces(folder_, "sda", 1200, 401)),
              ElementsAre("sda_2026-10-23T00-00-00.tape"));
}

TEST_F(TraceRotationTest, TheNewestTraceStaysEvenIfItIsTooLarge) {
  Add("sda_2026-10-24T00-00-00.tape", 400, 20);
  Add("sda_2026-10-25T00-00-00.tape", 4000, 10);
  RemoveOldTraces(folder_, "sda", 100, 0);
  EXPECT_TRUE(fs::exists(folder_ + "/sda_2026-10-25T00-00-00.tape"));
  EXPECT_FALSE(fs::exists(folder_ + "/sda_2026-10-24T00-00-00.tape"));
}

TEST_F(TraceRotationTest, OnAFullDiskTheOldestGoUntilThereIsRoom) {
  Add("sda_2026-10-23T00-00-00.tape", 400, 30);
  Add("sda_2026-10-24T00-00-00.tape", 400, 20);
  Add("sda_2026-10-25T00-00-00.tape", 400, 10);
  Add("holiday.tape", 4000, 90);
  EXPECT_THAT(Names(RemoveOldest(folder_, "sda", 401)),
              ElementsAre("sda_2026-10-23T00-00-00.tape", "sda_2026-10-24T00-00-00.tape"));
  EXPECT_THAT(Names(RemoveOldest(folder_, "sda", 1)), ElementsAre("sda_2026-10-25T00-00-00.tape"));
  EXPECT_THAT(RemoveOldest(folder_, "sda", 1), IsEmpty());
}

// Another recorder may write them, and keep them for longer.
TEST_F(TraceRotationTest, TracesOfOtherDisksStayAndDoNotCount) {
  Add("sdb_2026-10-20T00-00-00.tape", 4000, 80);
  Add("sdaa_2026-10-20T00-00-00.tape", 4000, 80);
  Add("2disks_2026-10-20T00-00-00.tape", 4000, 80);
  Add("sda_2026-10-24T00-00-00.tape", 400, 20);
  Add("sda_2026-10-25T00-00-00.tape", 400, 10);
  EXPECT_THAT(RemoveOldTraces(folder_, SeriesOf({"sda"}), 800, 0), IsEmpty());
  EXPECT_THAT(Names(RemoveOldest(folder_, SeriesOf({"sda"}), 5000)),
              ElementsAre("sda_2026-10-24T00-00-00.tape", "sda_2026-10-25T00-00-00.tape"));
}

TEST_F(TraceRotationTest, RecordingsOfSeveralDisksAreOneSeriesWhateverTheirNumber) {
  Add("3disks_2026-10-23T00-00-00.tape", 400, 30);
  Add("sda_2026-10-24T00-00-00.tape", 400, 20);
  Add("2disks_2026-10-25T00-00-00.tape", 400, 10);
  EXPECT_THAT(Names(RemoveOldTraces(folder_, SeriesOf({"sda", "sdb"}), 799, 0)),
              ElementsAre("3disks_2026-10-23T00-00-00.tape"));
}

TEST_F(TraceRotationTest, WhatTheRecordingDidNotNameIsNotTouched) {
  Add("holiday.tape", 4000, 90);
  Add("sda_2026-10-20T00-00-00.tape.partial", 4000, 80);
  Add("sda_2026-10-20T00-00-00.txt", 4000, 70);
  Add("sda_2026-10-25T00-00-00.tape", 10, 1);
  EXPECT_THAT(RemoveOldTraces(folder_, "sda", 1, 0), IsEmpty());
}

}  // namespace
}  // namespace blktape
