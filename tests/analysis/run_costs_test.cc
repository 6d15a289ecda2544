#include "analysis/run_costs.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/latency_histogram.h"
#include "analysis/run_series.h"
#include "base/units.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace blktape {
namespace {

using ::testing::DoubleEq;
using ::testing::Optional;

IoRecord Io(uint64_t ordinal, Op op, uint64_t bytes, int64_t due_ns, int64_t issue_ns,
            int64_t complete_ns, uint32_t flags = 0) {
  IoRecord io;
  io.op = op;
  io.flags = flags;
  io.lba = Lba(0);
  io.bytes = bytes;
  io.queue_ns = due_ns;
  io.issue_ns = issue_ns;
  io.backlog_ns = static_cast<uint64_t>(issue_ns - due_ns);  // none of it the host's
  io.complete_ns = complete_ns;
  io.ordinal = ordinal;
  return io;
}

Segment Piece(uint64_t first, uint64_t end, std::array<uint64_t, kWaitClasses> by_class) {
  Segment segment;
  segment.first_ordinal = first;
  segment.end_ordinal = end;
  segment.by_class = by_class;
  segment.foreground = by_class[0] + by_class[1] + by_class[2];
  return segment;
}

RunCosts CostsOf(const Segmentation& segmentation, const std::vector<IoRecord>& records) {
  RunCostsBuilder builder(&segmentation);
  for (const IoRecord& io : records) builder.Add(io);
  return builder.Finish(proto::Header(), std::nullopt);
}

TEST(RunCostsTest, WaitIsTheUnionOfForegroundResponses) {
  Segmentation cut;
  cut.records = 5;
  cut.segments = {Piece(0, 3, {2, 0, 1}), Piece(3, 5, {1, 0, 0})};
  // [0, 50] and [5, 80] touch, the write in the background counts nowhere, [200, 260] is a flush;
  // [240, 300] of the second segment overlaps it: each segment has its own, the whole once.
  const RunCosts costs = CostsOf(cut, {
                                          Io(0, Op::kRead, 4096, 0, 10, 50),
                                          Io(1, Op::kRead, 4096, 5, 30, 80),
                                          Io(2, Op::kFlush, 0, 200, 200, 260),
                                          Io(3, Op::kRead, 4096, 240, 250, 300),
                                          Io(4, Op::kWrite, 4096, 250, 250, 900),
                                      });
  EXPECT_THAT(costs.segments[0].wait_ns, Optional(DoubleEq(140)));
  EXPECT_THAT(costs.segments[1].wait_ns, Optional(DoubleEq(60)));
  EXPECT_EQ(costs.wait_ns, 180);
}

TEST(RunCostsTest, TheHostsLatenessIsNoWaitAndIsToldApart) {
  Segmentation cut;
  cut.records = 3;
  cut.segments = {Piece(0, 3, {3, 0, 0})};
  std::vector<IoRecord> records = {
      Io(0, Op::kRead, 4096, 0, 10, 50),      // 10 late, of which 4 were the drive's
      Io(1, Op::kRead, 4096, 20, 30, 60),     // late while the first was waited for: adds nothing
      Io(2, Op::kRead, 4096, 100, 120, 130),  // 20 late
  };
  records[0].backlog_ns = 4;
  records[1].backlog_ns = 0;
  records[2].backlog_ns = 0;
  const RunCosts costs = CostsOf(cut, records);
  // [6, 50] with [30, 60], and [120, 130]; of 60 + 30 with the host's.
  EXPECT_EQ(costs.wait_ns, 54 + 10);
  EXPECT_EQ(costs.host_wait_ns, 6 + 20);
  // From 6 to 50, from 30 to 60, from 120 to 130.
  EXPECT_THAT(costs.responses[0].mean_ns, Optional(DoubleEq((44 + 30 + 10) / 3.0)));
}

TEST(RunCostsTest, OrderDoesNotMatterWithinSixtyFiveThousand) {
  Segmentation cut;
  cut.records = 10'000;
  cut.segments = {Piece(0, 10'000, {10'000, 0, 0})};
  std::vector<IoRecord> records;
  for (int i = 9'999; i >= 0; --i) {
    records.push_back(Io(i, Op::kRead, 4096, i * 1000, i * 1000, i * 1000 + 300));
  }
  const RunCosts costs = CostsOf(cut, records);
  EXPECT_EQ(costs.wait_ns, 3'000'000);
  EXPECT_EQ(costs.cut, 0u);
}

// The last one was due before all others, and the host submitted it behind them: only with the
// host's part is it out of order, by more than the 65,536 that are held.
TEST(RunCostsTest, AnIoOfWhichTheHostsPartIsCutIsCounted) {
  constexpr int kMany = 70'000;
  Segmentation cut;
  cut.records = kMany + 1;
  cut.segments = {Piece(0, kMany + 1, {kMany + 1, 0, 0})};
  std::vector<IoRecord> records;
  for (int i = 0; i < kMany; ++i) {
    const int64_t due_ns = 1000 + 10 * int64_t{i};
    records.push_back(Io(i, Op::kRead, 4096, due_ns, due_ns, due_ns + 5));
  }
  EXPECT_EQ(CostsOf(cut, records).cut, 0u);
  records.push_back(Io(kMany, Op::kRead, 4096, 0, 2'000'000, 2'000'005));
  records.back().backlog_ns = 0;
  const RunCosts costs = CostsOf(cut, records);
  EXPECT_EQ(costs.wait_ns, 5 * (kMany + 1));
  EXPECT_EQ(costs.cut, 1u);
}

TEST(RunCostsTest, ResponsesAreToldByClassWithTheMeanOfTheWorstHundredth) {
  Segmentation cut;
  cut.records = 351;
  cut.segments = {Piece(0, 100, {100, 0, 0}), Piece(100, 351, {150, 0, 1})};
  std::vector<IoRecord> records;
  for (int i = 0; i < 250; ++i) {
    const int64_t due_ns = i * 1000;
    records.push_back(Io(i, Op::kRead, 4096, due_ns, due_ns, due_ns + (i * 37) % 250 + 1));
  }
  records.push_back(Io(350, Op::kFlush, 0, 300'000, 300'000, 309'000));
  const RunCosts costs = CostsOf(cut, records);
  // 1 to 250, each once: mean 125.5; of 250 the worst three.
  EXPECT_EQ(costs.responses[0].ios, 250u);
  EXPECT_THAT(costs.responses[0].mean_ns, Optional(DoubleEq(125.5)));
  EXPECT_THAT(costs.responses[0].tail_ns, Optional(DoubleEq(249)));
  EXPECT_EQ(costs.responses[1].mean_ns, std::nullopt);
  EXPECT_THAT(costs.responses[2].tail_ns, Optional(DoubleEq(9'000)));
}

TEST(RunCostsTest, PercentilesAndSeriesAreOfTheSameResponses) {
  Segmentation cut;
  cut.records = 201;
  cut.segments = {Piece(0, 201, {200, 0, 0})};
  std::vector<IoRecord> records;
  // Due each 10 us from 5 ms on, done after 1 to 200 us, each once.
  for (int i = 0; i < 200; ++i) {
    const int64_t due_ns = 5'000'000 + i * 10'000;
    records.push_back(Io(i, Op::kRead, 4096, due_ns, due_ns, due_ns + (i * 37 % 200 + 1) * 1'000));
  }
  // Nobody waits for it: in the throughput alone.
  records.push_back(Io(200, Op::kWrite, 8192, 7'000'000, 7'000'000, 7'500'000));
  const RunCosts costs = CostsOf(cut, records);
  EXPECT_EQ(costs.latencies[0].count(), 200u);
  EXPECT_THAT(costs.latencies[0].PercentileNs(kP50), Optional(100'000));
  EXPECT_THAT(costs.latencies[0].PercentileNs(kP99), Optional(198'000));
  EXPECT_EQ(costs.latencies[2].count(), 0u);
  // Steps of 1 ms since the first due time.
  EXPECT_EQ(costs.series.step_ns, 1'000'000);
  ASSERT_EQ(costs.series.steps.size(), 3u);
  double ios = 0;
  double bytes = 0;
  for (const RunSeries::Step& step : costs.series.steps) {
    ios += step.ios_per_s / 1e3;
    bytes += step.bytes_per_s / 1e3;
  }
  EXPECT_DOUBLE_EQ(ios, 201);
  EXPECT_DOUBLE_EQ(bytes, 200 * 4096 + 8192);
}

TEST(RunCostsTest, WorkIsTheUnionOfService) {
  Segmentation cut;
  cut.records = 4;
  cut.segments = {Piece(0, 2, {2, 0, 0}), Piece(2, 4, {2, 0, 0})};
  const RunCosts costs = CostsOf(cut, {
                                          Io(0, Op::kRead, 4096, 0, 10, 50),
                                          Io(1, Op::kRead, 4096, 5, 30, 80),
                                          Io(2, Op::kRead, 4096, 6, 70, 90),
                                          Io(3, Op::kRead, 4096, 7, 95, 100),
                                      });
  EXPECT_THAT(costs.segments[0].busy_ns, Optional(DoubleEq(70)));
  EXPECT_THAT(costs.segments[1].busy_ns, Optional(DoubleEq(25)));
}

TEST(RunCostsTest, OfASampleWhatLiesBetweenTheWindowsCountsNowhere) {
  Segmentation cut;
  cut.records = 3;
  cut.segments = {Piece(10, 11, {1, 0, 0}), Piece(20, 21, {1, 0, 0})};
  const std::vector<IoRecord> records = {Io(10, Op::kRead, 4096, 0, 0, 50),
                                         Io(19, Op::kRead, 4096, 100, 100, 170),
                                         Io(20, Op::kRead, 4096, 200, 200, 210)};
  EXPECT_EQ(CostsOf(cut, records).outside, 1u);
  cut.has_gaps = true;
  const RunCosts costs = CostsOf(cut, records);
  EXPECT_EQ(costs.outside, 0u);
  EXPECT_EQ(costs.wait_ns, 60);
}

TEST(RunCostsTest, RecordsThatBelongNowhereAreCountedApart) {
  Segmentation cut;
  cut.records = 1;
  cut.segments = {Piece(0, 1, {1, 0, 0})};
  IoRecord unnumbered = Io(0, Op::kRead, 4096, 0, 0, 10);
  unnumbered.ordinal.reset();
  IoRecord unfinished = Io(0, Op::kRead, 4096, 0, 0, 10);
  unfinished.complete_ns.reset();
  const RunCosts costs = CostsOf(cut, {unnumbered, Io(7, Op::kRead, 4096, 0, 0, 10), unfinished});
  EXPECT_EQ(costs.outside, 2u);
  EXPECT_EQ(costs.incomplete, 1u);
  EXPECT_EQ(costs.segments[0].wait_ns, std::nullopt);
  const auto cycle = CycleCosts(costs, costs);
  ASSERT_FALSE(cycle.ok());
  EXPECT_EQ(cycle.status().code(), StatusCode::kDataLoss);
}

TEST(RunCostsTest, ACycleTakesWorkFromTheRunAtMaxSpeed) {
  Segmentation cut;
  cut.records = 1;
  cut.segments = {Piece(0, 1, {1, 0, 0})};
  const RunCosts timed = CostsOf(cut, {Io(0, Op::kRead, 4096, 0, 0, 30)});
  const RunCosts max = CostsOf(cut, {Io(0, Op::kRead, 4096, 0, 0, 20)});
  const auto cycle = CycleCosts(timed, max);
  ASSERT_TRUE(cycle.ok());
  EXPECT_EQ((*cycle)[0], (SegmentCosts{30, 20}));
}

TEST(RunCostsTest, ACostOfNothingCountsAsOneNanosecond) {
  Segmentation cut;
  cut.records = 1;
  cut.segments = {Piece(0, 1, {1, 0, 0})};
  const RunCosts costs = CostsOf(cut, {Io(0, Op::kRead, 4096, 5, 5, 5)});
  const auto cycle = CycleCosts(costs, costs);
  ASSERT_TRUE(cycle.ok());
  EXPECT_EQ((*cycle)[0], (SegmentCosts{1, 1}));
}

}  // namespace
}  // namespace blktape
