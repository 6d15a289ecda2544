// A profile is the same however it is made: a record at a time as the definitions read
// (PlainProfile), or as columns on any number of threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "analysis/depth_meter.h"
#include "analysis/in_flight.h"
#include "analysis/profile.h"
#include "analysis/profile_trace.h"
#include "analysis/reorder_buffer.h"
#include "analysis/reorder_run.h"
#include "base/json.h"
#include "format/io_record.h"
#include "format/trace_reader.h"
#include "report/report_json.h"
#include "tests/analysis/plain_profile.h"
#include "tests/format/trace_testing.h"
#include "tests/support/random_cases.h"

namespace blktape {
namespace {

std::string Text(const Result<Profile>& profile) {
  if (!profile.ok()) return profile.status().message();
  return JsonText(ProfileJson(*profile));
}

Result<Profile> PlainProfileOf(const std::string& path, const ProfileOptions& options) {
  PlainProfile builder(options);
  ASSIGN_OR_RETURN(const std::unique_ptr<TraceReader> reader, TraceReader::Open(path, &builder));
  if (reader->header().has_start()) builder.OnAnchor(reader->header().start());
  if (reader->summary()) builder.Expect(*reader->summary());
  RETURN_IF_ERROR(
      ForEachRecord(reader.get(), [&](const IoRecord& record) { builder.Add(record); }));
  return builder.Finish(reader->header(), reader->summary(),
                        [&reader](uint32_t id) { return std::string(reader->ProcessName(id)); });
}

std::string Saved(const std::string& trace) {
  std::string path = testing::TempDir() + "/profile_threads_test.tape";
  std::ofstream(path, std::ios::binary) << trace;
  return path;
}

void ExpectSame(const std::string& trace, ProfileOptions options = {}) {
  const std::string path = Saved(trace);
  const std::string plain = Text(PlainProfileOf(path, options));
  for (const int threads : {1, 2, 4}) {
    options.threads = threads;
    ASSERT_EQ(Text(ProfileTrace(path, options)), plain) << threads << " threads";
  }
}

TEST(ProfileThreadsTest, ADesktopsTrace) {
  const std::string trace = TraceOf(DesktopRecords(/*seed=*/3, 70'000), 9'000);
  ExpectSame(trace);
  ExpectSame(trace, {.details = true});
  ExpectSame(trace, {.footprint = false});
}

TEST(ProfileThreadsTest, WindowsAndDevices) {
  std::mt19937_64 random(5);
  std::vector<IoRecord> records = DesktopRecords(/*seed=*/4, 20'000);
  for (IoRecord& io : records) io.device = static_cast<uint32_t>(random() % 3);
  const std::string trace = TraceOf(records, 700, /*devices=*/3);
  ExpectSame(trace, {.details = true});
  ExpectSame(trace, {.device = 1});
  ExpectSame(trace, {.from_ns = 1'000'000'000, .to_ns = 7'000'000'000, .details = true});
  ExpectSame(trace, {.device = 2, .to_ns = 2'000'000'000});
}

TEST(ProfileThreadsTest, WhateverARecordHolds) {
  std::mt19937_64 random(7);
  for (int round = 0; round < RandomCases(4); ++round) {
    std::vector<IoRecord> records;
    for (int i = 0; i < 6'000; ++i) records.push_back(AnyRecord(&random, 20));
    ExpectSame(TraceOf(records, 500, /*devices=*/20), {.details = true});
  }
}

// So many that some are due when others, which were due later, have left.
TEST(ProfileThreadsTest, RecordsFarOutOfOrder) {
  std::mt19937_64 random(9);
  std::vector<IoRecord> records = DesktopRecords(/*seed=*/6, 30'000);
  for (size_t at = 0; at + 3'000 <= records.size(); at += 3'000) {
    const size_t length = at % 2 == 0 ? 40 : 900;
    std::shuffle(records.begin() + static_cast<std::ptrdiff_t>(at),
                 records.begin() + static_cast<std::ptrdiff_t>(at + length), random);
  }
  ExpectSame(TraceOf(records, 1'000), {.details = true});
}

TEST(ProfileThreadsTest, ManyInFlight) {
  std::mt19937_64 random(11);
  std::vector<IoRecord> records = DesktopRecords(/*seed=*/8, 30'000);
  for (IoRecord& io : records) {
    io.complete_ns =
        io.issue_ns.value_or(*io.queue_ns) + static_cast<int64_t>(random() % 5'000'000'000);
  }
  ExpectSame(TraceOf(records, 4'000), {.details = true});
}

TEST(ProfileThreadsTest, DamagedTraces) {
  std::mt19937_64 random(13);
  const std::string whole = TraceOf(DesktopRecords(/*seed=*/10, 6'000), 250);
  for (int round = 0; round < RandomCases(60); ++round) {
    std::string trace = whole;
    const size_t at = 2'000 + random() % (trace.size() - 12'000);
    const size_t length = 1 + random() % 8'000;
    switch (round % 5) {
      case 0:
        for (int i = 0; i < 4; ++i) {
          char& byte = trace[random() % trace.size()];
          byte = static_cast<char>(byte ^ 1 << random() % 8);
        }
        break;
      case 1:
        trace.resize(at);
        break;
      case 2:
        trace.erase(at, length);
        break;
      case 3:
        trace.insert(at, trace.substr(at / 2, length));
        break;
      default:  // its first frame
        trace[random() % 200] ^= 0x55;
        break;
    }
    ExpectSame(trace, {.details = round % 2 == 0});
    if (HasFatalFailure()) FAIL() << "round " << round;
  }
}

struct Item {
  int64_t start_ns = 0;
  int number = 0;
};

// One item after the other through a ReorderBuffer says in which order they have to leave.
TEST(ProfileThreadsTest, ManyItemsAtATimeLeaveAsOneByOne) {
  std::mt19937_64 random(15);
  for (const int64_t spread : {0, 5, 1'000, 200'000}) {
    ReorderBuffer<int> buffer;
    ReorderRun<Item> run;
    std::vector<int> expected, got;
    int64_t arrival_ns = 0;
    for (int number = 0; number < 20'000; ++number) {
      arrival_ns += static_cast<int64_t>(random() % 10);
      // Now and then one that should have come long ago.
      const int64_t late_ns = random() % 3'000 == 0 ? 5'000 : 0;
      const int64_t start_ns =
          arrival_ns - late_ns + static_cast<int64_t>(random() % static_cast<uint64_t>(spread + 1));
      const auto take = [&expected](int64_t, int left) { expected.push_back(left); };
      buffer.Push(start_ns, number);
      buffer.Release(arrival_ns, take);
      run.Push({start_ns, number}, arrival_ns);
      if (number % 512 == 511) {
        const std::vector<Item>& items = run.Order();
        for (size_t i = 0; i < run.Leaving(); ++i) got.push_back(items[i].number);
        run.Drop();
        // Some may leave later, but none before it is due or in another order.
        ASSERT_LE(got.size(), expected.size());
        ASSERT_TRUE(std::equal(got.begin(), got.end(), expected.begin()));
      }
    }
    buffer.ReleaseAll([&expected](int64_t, int left) { expected.push_back(left); });
    for (const Item& item : run.OrderAll()) got.push_back(item.number);
    EXPECT_EQ(got, expected);
  }
}

// Where no arrival says what may leave, as in a result, what is held has a bound and puts right
// what is no further than that from its place.
TEST(ProfileThreadsTest, ItemsBeyondTheCapacityLeaveInOrder) {
  constexpr size_t kCapacity = ReorderBuffer<int>::kCapacity;
  constexpr int kItems = 300'000;
  std::mt19937_64 random(19);
  ReorderRun<Item> run;
  std::vector<int> got;
  for (int number = 0; number < kItems; ++number) {
    const auto off = static_cast<int64_t>(random() % (kCapacity / 2));
    run.Push({number + off, number}, std::numeric_limits<int64_t>::min());
    if (number % 5'000 == 4'999) {
      const std::vector<Item>& items = run.Order();
      for (size_t i = 0; i < run.Leaving(); ++i) {
        got.push_back(static_cast<int>(items[i].start_ns));
      }
      run.Drop();
      EXPECT_LE(static_cast<size_t>(number) + 1 - got.size(), kCapacity + kCapacity / 8 + 5'000);
    }
  }
  EXPECT_GT(got.size(), kItems / 2);
  for (const Item& item : run.OrderAll()) got.push_back(static_cast<int>(item.start_ns));
  EXPECT_EQ(got.size(), size_t{kItems});
  EXPECT_TRUE(std::ranges::is_sorted(got));
}

// Two InFlight say what one DepthMeter has to.
TEST(ProfileThreadsTest, OneDepthMeterIsTwoInFlight) {
  std::mt19937_64 random(17);
  for (const bool in_order : {true, false}) {
    DepthMeter both;
    InFlight all, data;
    int64_t now_ns = 0;
    for (int i = 0; i < 50'000; ++i) {
      now_ns += static_cast<int64_t>(random() % 100);
      const int64_t start_ns =
          in_order || i < 20'000 || random() % 1'000 != 0 ? now_ns : now_ns - 5'000;
      const int64_t end_ns = start_ns + static_cast<int64_t>(random() % 700);
      const bool is_data = random() % 4 != 0;
      both.Add(start_ns, end_ns, is_data);
      all.Add(start_ns, end_ns);
      if (is_data) data.Add(start_ns, end_ns);
    }
    const auto expect_same = [](InFlight& got, InFlight& expected) {
      EXPECT_EQ(got.max(), expected.max());
      EXPECT_EQ(got.time_ns(), expected.time_ns());
      for (size_t i = 0; i < InFlight::kClasses; ++i) {
        EXPECT_EQ(got.FinishClasses()[i].issued, expected.FinishClasses()[i].issued) << i;
        EXPECT_EQ(got.FinishClasses()[i].time_ns, expected.FinishClasses()[i].time_ns) << i;
      }
    };
    expect_same(both.FinishAll(), all);
    expect_same(both.FinishData(), data);
  }
}

}  // namespace
}  // namespace blktape
