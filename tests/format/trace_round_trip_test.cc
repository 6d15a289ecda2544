#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/format/trace_testing.h"

namespace blktape {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(TraceRoundTripTest, AnyRecordComesBackAsItWas) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    std::vector<IoRecord> records;
    const size_t count = random() % 300;
    for (size_t i = 0; i < count; ++i) records.push_back(AnyRecord(&random, 20));
    const ReadBack back = ReadAll(TraceOf(records, 1 + random() % 100, 20));
    ASSERT_TRUE(back.status.ok()) << back.status.message();
    EXPECT_EQ(back.records, records);
    EXPECT_THAT(back.losses, IsEmpty());
    EXPECT_EQ(back.summary->records(), records.size());
  }
}

TEST(TraceRoundTripTest, APipeThatDripsGivesTheSameRecords) {
  const std::vector<IoRecord> records = DesktopRecords(5, 500);
  const ReadBack back = ReadAll(std::make_unique<DripSource>(TraceOf(records, 100)));
  ASSERT_TRUE(back.status.ok()) << back.status.message();
  EXPECT_EQ(back.records, records);
  EXPECT_THAT(back.losses, IsEmpty());
  EXPECT_FALSE(back.summary_before);
  ASSERT_TRUE(back.summary.has_value());
}

TEST(TraceRoundTripTest, TheSummaryCountsWhatWasWritten) {
  IoRecord read;
  read.lba = Lba(100);
  read.bytes = 512;
  read.issue_ns = 50;
  IoRecord discard;
  discard.op = Op::kDiscard;
  discard.lba = Lba(0);
  discard.bytes = 1 << 20;
  discard.queue_ns = 20;
  IoRecord flush;
  flush.op = Op::kFlush;
  const ReadBack back = ReadAll(TraceOf({Write4k(30, 8), read, discard, flush}, 3));
  ASSERT_TRUE(back.summary_before);
  EXPECT_EQ(back.summary->records(), 4);
  EXPECT_EQ(back.summary->first_ns(), 20);
  EXPECT_EQ(back.summary->last_ns(), 50);
  EXPECT_EQ(back.summary->read_bytes(), 512);
  EXPECT_EQ(back.summary->write_bytes(), 4096);
  EXPECT_EQ(back.summary->discard_bytes(), 1 << 20);
  EXPECT_EQ(back.summary->records_by_op().at(static_cast<int>(Op::kFlush)), 1);
  EXPECT_EQ(back.summary->records_by_op().count(static_cast<int>(Op::kZoneOpen)), 0);
}

// Notes each thing in the order it is told.
struct Order : TraceObserver {
  std::string told;
  void OnLoss(const proto::Loss&) override { told += 'L'; }
  void OnAnchor(const proto::ClockAnchor&) override { told += 'A'; }
  void OnMark(const proto::Mark&) override { told += 'M'; }
  void OnQueuedSizes(const proto::QueuedSizes&) override { told += 'Q'; }
};

TEST(TraceRoundTripTest, TheSummaryTellsWhatTheRecordsTouchOfEachDevice) {
  IoRecord write = Write4k(30, 16);  // bytes 8192 to 12288
  write.device = 1;
  IoRecord read = Write4k(40, 9);  // bytes 4608 to 8704
  read.device = 1;
  read.complete_ns.reset();
  IoRecord absurd = Write4k(50, UINT64_MAX / 512 + 1);
  absurd.device = 2;
  const ReadBack back = ReadAll(TraceOf({write, read, absurd}, 10, 3));
  ASSERT_TRUE(back.summary.has_value());
  EXPECT_EQ(back.summary->completed(), 2);
  ASSERT_EQ(back.summary->extents_size(), 2) << "none for a device without records";
  const proto::DeviceExtent& one = back.summary->extents(0);
  EXPECT_EQ(one.device(), 1);
  EXPECT_EQ(one.records(), 2);
  EXPECT_EQ(one.begin_bytes(), 4608);
  EXPECT_EQ(one.end_bytes(), 12288);
  EXPECT_EQ(one.address_bits(), 8192 | 4608 | 4096) << "a multiple of 512, not of 1024";
  EXPECT_EQ(back.summary->extents(1).end_bytes(), UINT64_MAX) << "does not wrap round";
}

TEST(TraceRoundTripTest, LossesAnchorsAndMarksKeepTheirPlaceBetweenTheRecords) {
  MemorySink sink;
  auto writer = TraceWriter::ToSink(&sink, TestHeader());
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->WriteAnchor({}).ok());
  ASSERT_TRUE((*writer)->Write(Write4k(1, 0)).ok());
  ASSERT_TRUE((*writer)->Write(Write4k(2, 0)).ok());
  ASSERT_TRUE((*writer)->WriteLoss({}).ok());
  ASSERT_TRUE((*writer)->Write(Write4k(3, 0)).ok());
  ASSERT_TRUE((*writer)->WriteMark({}).ok());
  (*writer)->CountQueued(Op::kWrite, 4096, 5);
  ASSERT_TRUE((*writer)->Finish({}).ok());

  Order order;
  auto reader = TraceReader::FromSource(std::make_unique<MemorySource>(sink.bytes()), &order);
  ASSERT_TRUE(reader.ok());
  IoRecord io;
  while (*(*reader)->Next(&io)) order.told += 'r';
  EXPECT_EQ(order.told, "ArrLrMQ");
}

TEST(TraceRoundTripTest, QueuedSizesAreCountedPerFrame) {
  MemorySink sink;
  auto writer = TraceWriter::ToSink(&sink, TestHeader());
  ASSERT_TRUE(writer.ok());
  (*writer)->CountQueued(Op::kWrite, 4096, 5);
  (*writer)->CountQueued(Op::kWrite, 4096, 1);
  (*writer)->CountQueued(Op::kFlush, 0, 3);
  (*writer)->CountFlaggedWrites(2);
  ASSERT_TRUE((*writer)->FlushFrame(false).ok());
  (*writer)->CountQueued(Op::kRead, 512, 1);
  ASSERT_TRUE((*writer)->Finish({}).ok());

  Observed observed;
  auto reader = TraceReader::FromSource(std::make_unique<MemorySource>(sink.bytes()), &observed);
  ASSERT_TRUE(reader.ok());
  IoRecord io;
  EXPECT_FALSE(*(*reader)->Next(&io));
  ASSERT_THAT(observed.queued_sizes, SizeIs(2));
  ASSERT_EQ(observed.queued_sizes[0].entries_size(), 1);
  EXPECT_EQ(observed.queued_sizes[0].entries(0).bytes(), 4096);
  EXPECT_EQ(observed.queued_sizes[0].entries(0).count(), 6);
  EXPECT_EQ(observed.queued_sizes[0].flushes_asked(), 3);
  EXPECT_EQ(observed.queued_sizes[0].flagged_writes(), 2);
  EXPECT_EQ(observed.queued_sizes[1].entries(0).bytes(), 512);
  EXPECT_EQ(observed.queued_sizes[1].flushes_asked(), 0);
}

TEST(TraceRoundTripTest, ProcessNamesAreThereAtTheRecordThatNeedsThem) {
  MemorySink sink;
  auto writer = TraceWriter::ToSink(&sink, TestHeader());
  ASSERT_TRUE(writer.ok());
  for (const char* name : {"vim", "ld", "vim", "no\xFFutf8"}) {
    IoRecord io = Write4k(1, 0);
    io.process = (*writer)->ProcessId(name);
    ASSERT_TRUE((*writer)->Write(io).ok());
  }
  ASSERT_TRUE((*writer)->Finish({}).ok());
  auto reader = TraceReader::FromSource(std::make_unique<DripSource>(sink.bytes()));
  ASSERT_TRUE(reader.ok());
  std::vector<std::string> names;
  IoRecord io;
  while (*(*reader)->Next(&io)) names.emplace_back((*reader)->ProcessName(*io.process));
  EXPECT_THAT(names, ElementsAre("vim", "ld", "vim", "no\xEF\xBF\xBDutf8"));
  EXPECT_EQ((*reader)->ProcessName(99), "");
}

TEST(TraceRoundTripTest, TextOfAnyBytesInAHeaderIsReadable) {
  proto::Header header = TestHeader();
  header.mutable_devices(0)->set_model("SSD\xA0 500G");
  MemorySink sink;
  auto writer = TraceWriter::ToSink(&sink, header);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->Finish({}).ok());
  auto reader = TraceReader::FromSource(std::make_unique<MemorySource>(sink.bytes()));
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  EXPECT_EQ((*reader)->header().devices(0).model(), "SSD\xEF\xBF\xBD 500G");
}

TEST(TraceRoundTripTest, SkippingGoesToTheFrameOfThatTimeAndStillKnowsProcesses) {
  MemorySink sink;
  TraceWriterOptions options;
  options.records_per_frame = 10;
  auto writer = TraceWriter::ToSink(&sink, TestHeader(), options);
  ASSERT_TRUE(writer.ok());
  for (int i = 0; i < 100; ++i) {
    IoRecord io = Write4k(1000 * i, 0);
    io.process = (*writer)->ProcessId(i < 50 ? "early" : "late");
    ASSERT_TRUE((*writer)->Write(io).ok());
  }
  ASSERT_TRUE((*writer)->Finish({}).ok());
  Observed observed;
  auto reader = TraceReader::FromSource(std::make_unique<MemorySource>(sink.bytes()), &observed);
  ASSERT_TRUE(reader.ok());
  const auto first_after = [&](int64_t arrival_ns) {
    EXPECT_TRUE((*reader)->SkipTo(arrival_ns).ok());
    IoRecord io;
    EXPECT_TRUE(*(*reader)->Next(&io));
    return io;
  };
  EXPECT_EQ(first_after(69'000).queue_ns, 60'000);
  EXPECT_EQ(first_after(70'000).queue_ns, 60'000);
  EXPECT_EQ(first_after(70'001).queue_ns, 70'000);
  EXPECT_EQ((*reader)->ProcessName(*first_after(85'000).process), "late");
  EXPECT_EQ(first_after(1'000'000).queue_ns, 90'000);
  EXPECT_EQ(first_after(-5).queue_ns, 0);
  EXPECT_EQ(first_after(45'000).queue_ns, 40'000);
  int rest = 0;
  IoRecord io;
  while (*(*reader)->Next(&io)) ++rest;
  EXPECT_EQ(rest, 59);
  EXPECT_THAT(observed.losses, IsEmpty());
  EXPECT_EQ((*reader)->lost_events(), 0);
}

TEST(TraceRoundTripTest, TheSummaryTellsHowFarRecordsStandBehindTheirPlace) {
  const auto late_ns_max = [](const std::vector<int64_t>& arrivals_ns) {
    std::vector<IoRecord> records;
    for (const int64_t at_ns : arrivals_ns) records.push_back(Write4k(at_ns, 0));
    const std::string trace = TraceOf(records, 2);
    auto reader = TraceReader::FromSource(std::make_unique<MemorySource>(trace));
    return (*reader)->summary()->late_ns_max();
  };
  EXPECT_EQ(late_ns_max({}), 0);
  EXPECT_EQ(late_ns_max({10, 10, 20, 50}), 0);
  // 35 stands behind 50, and 30 too: 20 behind the latest that stands before it.
  EXPECT_EQ(late_ns_max({10, 50, 35, 30, 40, 60}), 20);
}

TEST(TraceRoundTripTest, WithoutAnIndexSkippingSaysSo) {
  auto reader = TraceReader::FromSource(
      std::make_unique<DripSource>(TraceOf({Write4k(1, 0), Write4k(2, 0)}, 1)));
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ((*reader)->SkipTo(2).code(), StatusCode::kUnimplemented);
  IoRecord io;
  EXPECT_TRUE(*(*reader)->Next(&io));
  EXPECT_EQ(io.queue_ns, 1);
}

}  // namespace
}  // namespace blktape
