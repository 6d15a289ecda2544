#include "analysis/segments.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"
#include "format/io_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace blktape {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

IoRecord Io(Op op, uint64_t bytes, int64_t queue_ns, int64_t complete_ns, uint32_t flags = 0) {
  IoRecord io;
  io.op = op;
  io.flags = flags;
  io.lba = Lba(0);
  io.bytes = bytes;
  io.queue_ns = io.issue_ns = queue_ns;
  io.complete_ns = complete_ns;
  return io;
}

Segmentation Cut(const std::vector<IoRecord>& records) {
  ForegroundCounter counter;
  for (const IoRecord& io : records) counter.Add(io);
  SegmentCutter cutter(counter);
  uint64_t ordinal = 0;
  for (const IoRecord& io : records) cutter.Add(io, ordinal++);
  return cutter.Finish();
}

// `count` reads of 4 KiB, one every 1 us, each taking 500 ns.
std::vector<IoRecord> Reads(int count) {
  std::vector<IoRecord> records;
  for (int i = 0; i < count; ++i) {
    records.push_back(Io(Op::kRead, 4096, i * 1000, i * 1000 + 500));
  }
  return records;
}

// Moves the record of this index and all after it by `by_ns`.
void DelayFrom(std::vector<IoRecord>* records, size_t from, int64_t by_ns) {
  for (size_t i = from; i < records->size(); ++i) {
    IoRecord& io = (*records)[i];
    io.queue_ns = *io.queue_ns + by_ns;
    io.issue_ns = *io.issue_ns + by_ns;
    io.complete_ns = *io.complete_ns + by_ns;
  }
}

TEST(SegmentCountTest, AtLeastTwoThousandEachAndAtMostTwenty) {
  EXPECT_EQ(SegmentCount(0), 1u);
  EXPECT_EQ(SegmentCount(1'999), 1u);
  EXPECT_EQ(SegmentCount(3'999), 1u);
  EXPECT_EQ(SegmentCount(4'000), 2u);
  EXPECT_EQ(SegmentCount(39'999), 19u);
  EXPECT_EQ(SegmentCount(40'000), 20u);
  EXPECT_EQ(SegmentCount(10'000'000), 20u);
}

TEST(SegmentsTest, TellWhenTheyBeginSinceTheFirstArrival) {
  // One read a microsecond; the clock of the trace may begin anywhere.
  std::vector<IoRecord> records = Reads(6'000);
  DelayFrom(&records, 0, 7'000'000);
  const Segmentation cut = Cut(records);
  ASSERT_EQ(cut.segments.size(), 3u);
  EXPECT_EQ(cut.segments[0].from_ns, 0);
  EXPECT_EQ(cut.segments[1].from_ns, 2'000'000);
  EXPECT_EQ(cut.segments[2].from_ns, 4'000'000);
}

TEST(SegmentsTest, CutIntoEqualCountsOfForeground) {
  const Segmentation cut = Cut(Reads(6'000));
  ASSERT_EQ(cut.segments.size(), 3u);
  EXPECT_EQ(cut.segments[0].first_ordinal, 0u);
  EXPECT_EQ(cut.segments[1].first_ordinal, 2'000u);
  EXPECT_EQ(cut.segments[2].first_ordinal, 4'000u);
  EXPECT_EQ(cut.segments[2].end_ordinal, 6'000u);
  for (const Segment& segment : cut.segments) {
    EXPECT_EQ(segment.foreground, 2'000u);
    EXPECT_THAT(segment.by_class, ElementsAre(2'000u, 0u, 0u));
    EXPECT_EQ(segment.bytes, 2'000u * 4096);
    EXPECT_FALSE(segment.cut_at_idle);
  }
  EXPECT_EQ(cut.records, 6'000u);
  EXPECT_EQ(cut.observed_ns, 5'999'500);
}

TEST(SegmentsTest, BackgroundBelongsToASegmentButDoesNotCount) {
  std::vector<IoRecord> records;
  for (int i = 0; i < 4'000; ++i) {
    records.push_back(Io(Op::kRead, 4096, i * 1000, i * 1000 + 500));
    records.push_back(Io(Op::kWrite, 8192, i * 1000 + 10, i * 1000 + 500));
  }
  const Segmentation cut = Cut(records);
  ASSERT_EQ(cut.segments.size(), 2u);
  // The cut lies at the first place with 2,000 foreground I/Os before it: right behind the read.
  EXPECT_EQ(cut.segments[1].first_ordinal, 3'999u);
  EXPECT_EQ(cut.segments[0].foreground, 2'000u);
  EXPECT_EQ(cut.segments[0].bytes, 2'000u * 4096 + 1'999u * 8192);
  EXPECT_EQ(cut.write_bytes, 4'000u * 8192);
}

TEST(SegmentsTest, ACutMovesToTheNearestIdleGap) {
  // 10,000 reads: K = 5, 2,000 each, no room to move. 9,000: K = 4, 2,250 each, of which 250 may
  // go, so a cut may move by 125.
  std::vector<IoRecord> records = Reads(9'000);
  DelayFrom(&records, 2'250 - 120, kCutGapNs);
  DelayFrom(&records, 2'250 + 100, kCutGapNs);
  DelayFrom(&records, 4'500 + 126, kCutGapNs);       // out of reach
  DelayFrom(&records, 6'750 + 20, kCutGapNs - 600);  // too short: 400 ns are idle anyway
  const Segmentation cut = Cut(records);
  ASSERT_EQ(cut.segments.size(), 4u);
  EXPECT_EQ(cut.segments[1].first_ordinal, 2'350u);
  EXPECT_TRUE(cut.segments[1].cut_at_idle);
  EXPECT_EQ(cut.segments[2].first_ordinal, 4'500u);
  EXPECT_FALSE(cut.segments[2].cut_at_idle);
  EXPECT_EQ(cut.segments[3].first_ordinal, 6'750u);
}

TEST(SegmentsTest, OfTwoGapsAsNearTheEarlierOneIsTaken) {
  std::vector<IoRecord> records = Reads(9'000);
  DelayFrom(&records, 2'250 - 50, kCutGapNs);
  DelayFrom(&records, 2'250 + 50, kCutGapNs);
  EXPECT_EQ(Cut(records).segments[1].first_ordinal, 2'200u);
}

TEST(SegmentsTest, ACutMovesByAQuarterOfASegmentAtMost) {
  // 100,000 reads: 20 segments of 5,000, 3,000 to spare, so the quarter rules: 1,250.
  std::vector<IoRecord> records = Reads(100'000);
  DelayFrom(&records, 5'000 + 1'251, kCutGapNs);
  DelayFrom(&records, 10'000 - 1'250, kCutGapNs);
  const Segmentation cut = Cut(records);
  ASSERT_EQ(cut.segments.size(), 20u);
  EXPECT_EQ(cut.segments[1].first_ordinal, 5'000u);
  EXPECT_EQ(cut.segments[2].first_ordinal, 8'750u);
}

TEST(SegmentsTest, AnIoInFlightFillsAGap) {
  std::vector<IoRecord> records = Reads(9'000);
  records[2'249].complete_ns = *records[2'249].complete_ns + kCutGapNs;
  DelayFrom(&records, 2'260, kCutGapNs);
  EXPECT_EQ(Cut(records).segments[1].first_ordinal, 2'250u);
}

TEST(SegmentsTest, ATraceOfPlainWritesCountsThemAll) {
  std::vector<IoRecord> records;
  for (int i = 0; i < 5'000; ++i) {
    records.push_back(Io(Op::kWrite, 4096, i * 1000, i * 1000 + 500));
  }
  const Segmentation cut = Cut(records);
  EXPECT_TRUE(cut.all_is_foreground);
  ASSERT_EQ(cut.segments.size(), 2u);
  EXPECT_THAT(cut.segments[0].by_class, ElementsAre(0u, 0u, 2'500u));
}

TEST(SegmentsTest, ClassesAreThoseAPersonWaitsFor) {
  const Segmentation cut = Cut({
      Io(Op::kRead, 16'384, 0, 1),
      Io(Op::kRead, 16'385, 10, 11),
      Io(Op::kWrite, 4096, 20, 21, kFlagFua),
      Io(Op::kWrite, 4096, 30, 31, kFlagSync),
      Io(Op::kWrite, 4096, 40, 41),
      Io(Op::kFlush, 0, 50, 51),
      Io(Op::kFlush, 0, 60, 61, kFlagDerived),
      Io(Op::kDiscard, 4096, 70, 71),
  });
  ASSERT_EQ(cut.segments.size(), 1u);
  EXPECT_THAT(cut.segments[0].by_class, ElementsAre(1u, 1u, 3u));
}

TEST(SegmentsTest, AnOrdinalFindsItsSegment) {
  const Segmentation cut = Cut(Reads(4'000));
  EXPECT_THAT(cut.SegmentOf(0), Optional(0u));
  EXPECT_THAT(cut.SegmentOf(1'999), Optional(0u));
  EXPECT_THAT(cut.SegmentOf(2'000), Optional(1u));
  EXPECT_THAT(cut.SegmentOf(3'999), Optional(1u));
  EXPECT_EQ(cut.SegmentOf(4'000), std::nullopt);
}

// The trace's times are what a file says: 2^62 and -2^62 are no times, and their difference is
// none.
TEST(SegmentsTest, RecordsWithoutAnArrivalOrACompletionHaveNoOrder) {
  std::vector<IoRecord> records = Reads(10);
  EXPECT_EQ(Cut(records).without_order, 0u);
  records[9].complete_ns.reset();
  records[3].queue_ns.reset();
  EXPECT_EQ(Cut(records).without_order, 1u) << "it arrived when it was issued";
  records[3].issue_ns.reset();
  EXPECT_EQ(Cut(records).without_order, 2u);
}

TEST(SegmentsTest, TimesThatNoClockShowsCountAsAbsent) {
  const int64_t far_ns = int64_t{1} << 62;
  const Segmentation cut = Cut({Io(Op::kRead, 4096, -far_ns, -far_ns), Io(Op::kRead, 4096, 0, 10),
                                Io(Op::kRead, 4096, 100, 130), Io(Op::kRead, 4096, far_ns, far_ns),
                                Io(Op::kRead, 4096, INT64_MAX, INT64_MIN)});
  EXPECT_EQ(cut.observed_ns, 130);
  EXPECT_EQ(cut.records, 5u);
}

TEST(SegmentCutterTest, APieceKeepsTheTracesNumbersAndLeftOutRecordsCountNowhere) {
  ForegroundCounter counter;
  const IoRecord read = Io(Op::kRead, 4096, 0, 500);
  counter.Add(read);
  counter.Add(read);
  SegmentCutter cutter(counter);
  cutter.Add(read, 100);
  cutter.Add(read, 101, /*left_out=*/true);
  cutter.Add(read, 102);
  const Segmentation cut = cutter.Finish();
  EXPECT_EQ(cut.records, 3u);
  EXPECT_EQ(cut.data_requests, 2u);
  EXPECT_EQ(cut.read_bytes, 8192u);
  EXPECT_EQ(cut.foreground(), 2u);
  ASSERT_EQ(cut.segments.size(), 1u);
  EXPECT_EQ(cut.segments[0].first_ordinal, 100u);
  EXPECT_EQ(cut.segments[0].end_ordinal, 103u);
  EXPECT_EQ(cut.SegmentOf(99), std::nullopt);
  EXPECT_THAT(cut.SegmentOf(102), Optional(0u));
}

}  // namespace
}  // namespace blktape
