#include "analysis/run_costs.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

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

TEST(RunCostsTest, ResponseIsTheGeometricMeanOverTheClassesThatCount) {
  Segmentation cut;
  cut.records = 600;
  cut.segments = {Piece(0, 600, {200, 200, 199})};
  std::vector<IoRecord> records;
  uint64_t ordinal = 0;
  int64_t now = 0;
  const auto add = [&](int count, Op op, uint64_t bytes, int64_t response_ns, uint32_t flags) {
    for (int i = 0; i < count; ++i, now += 10'000) {
      records.push_back(Io(ordinal++, op, bytes, now, now + 5, now + response_ns, flags));
    }
  };
  add(200, Op::kRead, 4096, 100, 0);
  add(200, Op::kRead, 65'536, 400, 0);
  add(199, Op::kWrite, 4096, 9'000, kFlagSync);  // one too few to count
  add(1, Op::kWrite, 4096, 9'999, 0);            // nobody waits for it
  const RunCosts costs = CostsOf(cut, records);
  // sqrt(100 * 400)
  EXPECT_NEAR(*costs.segments[0].response_ns, 200, 1e-9);
  // 599 foreground I/Os: the worst 6 are sync writes.
  EXPECT_THAT(costs.segments[0].tail_ns, Optional(DoubleEq(9'000)));
  EXPECT_EQ(costs.wait_ns, 200 * 100 + 200 * 400 + 199 * 9'000);
}

TEST(RunCostsTest, WithoutAClassThatCountsAllAreOneClass) {
  Segmentation cut;
  cut.records = 3;
  cut.segments = {Piece(0, 3, {1, 1, 1})};
  const RunCosts costs = CostsOf(cut, {
                                          Io(0, Op::kRead, 4096, 0, 0, 10),
                                          Io(1, Op::kRead, 65'536, 100, 100, 120),
                                          Io(2, Op::kFlush, 0, 200, 200, 260),
                                      });
  EXPECT_THAT(costs.segments[0].response_ns, Optional(DoubleEq(30)));
  EXPECT_THAT(costs.segments[0].tail_ns, Optional(DoubleEq(60)));
}

TEST(RunCostsTest, TailIsTheMeanOfTheWorstHundredth) {
  Segmentation cut;
  cut.records = 250;
  cut.segments = {Piece(0, 250, {250, 0, 0})};
  std::vector<IoRecord> records;
  for (int i = 0; i < 250; ++i) {
    const int64_t due_ns = i * 1000;
    records.push_back(Io(i, Op::kRead, 4096, due_ns, due_ns, due_ns + (i * 37) % 250 + 1));
  }
  // 250 / 100, rounded up: the worst three of 1 .. 250, each of which comes once.
  EXPECT_THAT(CostsOf(cut, records).segments[0].tail_ns, Optional(DoubleEq(249)));
}

TEST(RunCostsTest, WorkIsTheUnionOfServiceAndResponseHoldsTheBacklog) {
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
  EXPECT_THAT(costs.segments[0].response_ns, Optional(DoubleEq((50 + 75) / 2.0)));
  EXPECT_EQ(costs.wait_ns, 100);
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
  EXPECT_EQ(costs.segments[0].response_ns, std::nullopt);
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
  EXPECT_EQ((*cycle)[0], (SegmentCosts{30, 30, 20}));
}

TEST(RunCostsTest, ACostOfNothingCountsAsOneNanosecond) {
  Segmentation cut;
  cut.records = 1;
  cut.segments = {Piece(0, 1, {1, 0, 0})};
  const RunCosts costs = CostsOf(cut, {Io(0, Op::kRead, 4096, 5, 5, 5)});
  const auto cycle = CycleCosts(costs, costs);
  ASSERT_TRUE(cycle.ok());
  EXPECT_EQ((*cycle)[0], (SegmentCosts{1, 1, 1}));
}

}  // namespace
}  // namespace blktape
