#include "analysis/interval_union.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "analysis/in_flight.h"
#include "analysis/reorder_buffer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace blktape {
namespace {

using ::testing::ElementsAre;

TEST(IntervalUnionTest, OverlapCountsOnce) {
  IntervalUnion busy;
  EXPECT_EQ(busy.Add(10, 30), 0);
  EXPECT_EQ(busy.Add(20, 40), 0);
  EXPECT_EQ(busy.Add(25, 26), 0);
  EXPECT_EQ(busy.measure_ns(), 30);
}

TEST(IntervalUnionTest, TouchingIntervalsLeaveNoGap) {
  IntervalUnion busy;
  busy.Add(0, 10);
  EXPECT_EQ(busy.Add(10, 20), 0);
  EXPECT_EQ(busy.Add(23, 30), 3);
  EXPECT_EQ(busy.measure_ns(), 27);
  EXPECT_EQ(busy.first_ns(), 0);
  EXPECT_EQ(busy.last_ns(), 30);
}

TEST(IntervalUnionTest, ALateIntervalIsCutAndCounted) {
  IntervalUnion busy;
  busy.Add(0, 10);
  busy.Add(100, 110);
  busy.Add(50, 105);  // its part before 100 comes too late
  busy.Add(50, 60);   // all of it
  EXPECT_EQ(busy.measure_ns(), 20);
  EXPECT_EQ(busy.out_of_order(), 2u);
}

TEST(IntervalUnionTest, EqualsCountingEachNanosecond) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::pair<int64_t, int64_t>> intervals;
    for (int i = 0; i < 30; ++i) {
      const auto start = static_cast<int64_t>(random() % 500);
      intervals.emplace_back(start, start + random() % 20);
    }
    std::sort(intervals.begin(), intervals.end());
    IntervalUnion busy;
    std::set<int64_t> covered;
    int64_t gaps = 0;
    for (const auto& [start, end] : intervals) {
      gaps += busy.Add(start, end);
      for (int64_t at = start; at < end; ++at) covered.insert(at);
    }
    EXPECT_EQ(busy.measure_ns(), static_cast<int64_t>(covered.size()));
    EXPECT_EQ(gaps, busy.last_ns() - busy.first_ns() - busy.measure_ns());
    EXPECT_EQ(busy.out_of_order(), 0u);
  }
}

TEST(InFlightTest, CompletionsComeFirstAtEqualTimes) {
  InFlight in_flight;
  in_flight.Add(0, 10);
  in_flight.Add(10, 20);
  EXPECT_EQ(in_flight.max(), 1u);
  in_flight.Add(19, 30);
  EXPECT_EQ(in_flight.max(), 2u);
  EXPECT_EQ(static_cast<int64_t>(in_flight.time_ns()), 31);
}

TEST(InFlightTest, AnIoWithoutDurationIsNeverInFlight) {
  InFlight in_flight;
  in_flight.Add(5, 5);
  EXPECT_EQ(in_flight.max(), 0u);
}

TEST(InFlightTest, EqualsCountingAtEveryStart) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::pair<int64_t, int64_t>> intervals;
    for (int i = 0; i < 40; ++i) {
      const auto start = static_cast<int64_t>(random() % 200);
      intervals.emplace_back(start, start + random() % 50);
    }
    std::sort(intervals.begin(), intervals.end());
    InFlight in_flight;
    for (const auto& [start, end] : intervals) in_flight.Add(start, end);
    uint64_t most = 0;
    for (int64_t at = 0; at < 300; ++at) {
      most = std::max<uint64_t>(
          most, std::count_if(intervals.begin(), intervals.end(), [at](const auto& one) {
            return one.first <= at && at < one.second;
          }));
    }
    EXPECT_EQ(in_flight.max(), most);
  }
}

std::vector<int> Drain(ReorderBuffer<int>* buffer) {
  std::vector<int> taken;
  buffer->ReleaseAll([&taken](int64_t, int item) { taken.push_back(item); });
  return taken;
}

TEST(ReorderBufferTest, SortsByTimeAndKeepsTies) {
  ReorderBuffer<int> buffer;
  buffer.Push(30, 1);
  buffer.Push(10, 2);
  buffer.Push(30, 3);
  buffer.Push(20, 4);
  EXPECT_THAT(Drain(&buffer), ElementsAre(2, 4, 1, 3));
}

TEST(ReorderBufferTest, HoldsBackWhatSomethingEarlierMayStillPrecede) {
  ReorderBuffer<int> buffer;
  std::vector<int64_t> times;
  const auto take = [&times](int64_t time_ns, int) { times.push_back(time_ns); };
  // Each item leaves 1,000 ns after its arrival, but every tenth one at once.
  for (int i = 0; i < 100'000; ++i) {
    const int64_t arrival_ns = i * 10;
    buffer.Push(arrival_ns + (i % 10 == 0 ? 0 : 1000), i);
    buffer.Release(arrival_ns, take);
  }
  EXPECT_GT(times.size(), 99'000u);
  buffer.ReleaseAll(take);
  EXPECT_EQ(times.size(), 100'000u);
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
}

TEST(ReorderBufferTest, LetsTheEarliestGoWhenItIsFull) {
  ReorderBuffer<int> buffer;
  uint64_t taken = 0;
  for (int i = 0; i < 300'000; ++i) {
    buffer.Push(1'000'000 + i, i);
    buffer.Release(/*watermark_ns=*/0, [&taken](int64_t, int) { ++taken; });
  }
  EXPECT_EQ(taken, 300'000 - ReorderBuffer<int>::kCapacity);
}

TEST(ReorderBufferTest, AnyOrderWithinTheCapacityIsPutRightAndEqualTimesStayAsTheyCame) {
  ReorderBuffer<int> buffer;
  std::vector<std::pair<int64_t, int>> left;
  const auto take = [&left](int64_t time_ns, int item) { left.emplace_back(time_ns, item); };
  // Backwards, each time twice: every item belongs before all that came.
  constexpr int kTimes = 5'000;
  for (int i = 0; i < 2 * kTimes; ++i) {
    buffer.Push(kTimes - i / 2, i);
    buffer.Release(/*watermark_ns=*/0, take);
  }
  EXPECT_TRUE(left.empty());
  buffer.Release(/*watermark_ns=*/kTimes + 1, take);
  buffer.ReleaseAll(take);
  ASSERT_EQ(left.size(), 2u * kTimes);
  for (int i = 0; i < kTimes; ++i) {
    const int first = 2 * (kTimes - 1 - i);
    EXPECT_EQ(left[2 * i], std::pair(int64_t{i + 1}, first));
    EXPECT_EQ(left[2 * i + 1], std::pair(int64_t{i + 1}, first + 1));
  }
}

}  // namespace
}  // namespace blktape
