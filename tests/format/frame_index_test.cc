#include "format/frame_index.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.h"
#include "format/io_record.h"

namespace blktape {
namespace {

TEST(FrameIndexTest, AFrameWithoutATimeIsNotListed) {
  FrameIndexBuilder builder;
  builder.Add(100, 5, 0, {});
  builder.Add(200, std::nullopt, 10, {});
  builder.Add(300, 7, 10, {});
  proto::Summary summary;
  builder.Store(&summary);
  ASSERT_EQ(summary.frames_size(), 2);
  EXPECT_EQ(summary.frames(1).offset_bytes(), 300);
  EXPECT_EQ(summary.frames(1).first_record(), 10);
}

TEST(FrameIndexTest, ManyFramesAreListedEverySoMany) {
  FrameIndexBuilder builder;
  constexpr int64_t kFrames = 100'000;
  for (int64_t i = 0; i < kFrames; ++i) {
    builder.Add(static_cast<uint64_t>(i), i, static_cast<uint64_t>(i), {});
  }
  proto::Summary summary;
  builder.Store(&summary);
  EXPECT_LE(static_cast<size_t>(summary.frames_size()), FrameIndexBuilder::kMaxEntries);
  // 100,000 frames need a stride of 32 to fit into 4,096 entries.
  ASSERT_EQ(summary.frames_size(), kFrames / 32);
  for (int i = 0; i < summary.frames_size(); ++i) EXPECT_EQ(summary.frames(i).first_ns(), 32 * i);
}

TEST(FrameIndexTest, TheFrameToBeginAtMissesNothingOfThatTime) {
  FrameIndexBuilder builder;
  for (const int64_t first_ns : {10, 20, 30}) {
    builder.Add(static_cast<uint64_t>(first_ns), first_ns, 0, {});
  }
  proto::Summary summary;
  builder.Store(&summary);
  summary.set_late_ns_max(0);
  EXPECT_EQ(FindFrame(summary, 5)->first_ns(), 10);
  EXPECT_EQ(FindFrame(summary, 10)->first_ns(), 10);
  // The last record of the first frame may have arrived at 20 too.
  EXPECT_EQ(FindFrame(summary, 20)->first_ns(), 10);
  EXPECT_EQ(FindFrame(summary, 21)->first_ns(), 20);
  EXPECT_EQ(FindFrame(summary, 99)->first_ns(), 30);
  summary.clear_frames();
  EXPECT_EQ(FindFrame(summary, 99), nullptr);
}

TEST(FrameIndexTest, ARecordMayStandSoFarBehindItsPlace) {
  FrameIndexBuilder builder;
  // The third begins with a late record: a recorder that could not order its records.
  for (const int64_t first_ns : {10, 30, 20, 40}) {
    builder.Add(static_cast<uint64_t>(first_ns), first_ns, 0, {});
  }
  proto::Summary summary;
  builder.Store(&summary);
  // Nothing tells how far: it is read from the start.
  EXPECT_EQ(FindFrame(summary, 99), nullptr);
  // The second frame may hold a record of 35, so what is wanted from 35 on begins no later.
  summary.set_late_ns_max(15);
  EXPECT_EQ(FindFrame(summary, 35)->first_ns(), 10);
  EXPECT_EQ(FindFrame(summary, 45)->first_ns(), 10);
  EXPECT_EQ(FindFrame(summary, 46)->first_ns(), 20);
  EXPECT_EQ(FindFrame(summary, 55)->first_ns(), 20);
  EXPECT_EQ(FindFrame(summary, 56)->first_ns(), 40);
}

IoRecord Read(uint64_t sector, uint64_t bytes) {
  IoRecord io;
  io.lba = Lba(sector);
  io.bytes = bytes;
  return io;
}

proto::FrameContents Stored(const FrameContents& contents) {
  proto::FrameContents stored;
  contents.Store(&stored);
  return stored;
}

TEST(FrameContentsTest, SaysWhatTheRecordsAre) {
  FrameContents contents;
  IoRecord write = Read(100, 4096);
  write.op = Op::kWrite;
  write.device = 65;
  write.process = 3;
  contents.Add(write);
  IoRecord flush;
  flush.op = Op::kFlush;
  flush.device = 2;
  flush.process = 512 + 12;
  contents.Add(flush);
  const proto::FrameContents stored = Stored(contents);
  EXPECT_EQ(stored.ops(), 0b1010u);
  EXPECT_EQ(stored.devices(), 0b110u);
  EXPECT_EQ(stored.processes(), "\x08\x10");
  EXPECT_FALSE(stored.without_process());
  EXPECT_EQ(stored.ops_without_address(), 0b1000u);
  EXPECT_EQ(stored.begin_lba(), 100u);
  EXPECT_EQ(stored.end_lba(), 108u);
  EXPECT_EQ(stored.least_bytes(), 0u);
  EXPECT_EQ(stored.most_bytes(), 4096u);
  EXPECT_FALSE(stored.queued_sizes() || stored.anchors() || stored.others());
}

TEST(FrameContentsTest, AnAddressAtTheEndOfAllIsCovered) {
  FrameContents contents;
  contents.Add(Read(UINT64_MAX, 512));
  EXPECT_EQ(Stored(contents).begin_lba(), UINT64_MAX);
  EXPECT_EQ(Stored(contents).end_lba(), UINT64_MAX);
  FrameContents empty;
  empty.Add(Read(7, 0));
  empty.Add(Read(9, 513));
  EXPECT_EQ(Stored(empty).begin_lba(), 7u);
  EXPECT_EQ(Stored(empty).end_lba(), 11u);
  EXPECT_TRUE(Stored(empty).without_process());
}

// Readers count such times wherever they stand.
TEST(FrameContentsTest, ATimeThatIsNoneIsNotMissed) {
  FrameContents contents;
  IoRecord io = Read(0, 512);
  io.complete_ns = int64_t{1} << 60;
  contents.Add(io);
  EXPECT_FALSE(Stored(contents).others());
  *io.complete_ns += 1;
  contents.Add(io);
  EXPECT_TRUE(Stored(contents).others());
}

TEST(FrameContentsTest, SetsOfProcessesMeetWhereTheyShareOne) {
  ProcessBits some;
  some.Add(0);
  some.Add(511);
  ProcessBits other;
  other.Add(510);
  EXPECT_FALSE(some.Meets(other.Bytes()));
  EXPECT_FALSE(some.Meets(""));
  other.Add(2 * 512 + 511);
  EXPECT_TRUE(some.Meets(other.Bytes()));
  // Longer than any writer makes it.
  EXPECT_FALSE(some.Meets(std::string(64, '\0') + std::string(100, '\xFF')));
}

// A frame of one read of `bytes`.
FrameContents Of(uint64_t bytes) {
  FrameContents contents;
  contents.Add(Read(0, bytes));
  return contents;
}

TEST(FrameContentsTest, AFrameWithoutAnEntryIsInTheOneBefore) {
  FrameIndexBuilder builder;
  builder.Add(50, std::nullopt, 0, Of(1));  // before all entries: nobody tells of it
  builder.Add(100, 5, 0, Of(512));
  builder.Add(200, std::nullopt, 10, Of(8192));
  builder.Add(300, 7, 10, Of(1024));
  proto::Summary summary;
  builder.Store(&summary);
  ASSERT_EQ(summary.frames_size(), 2);
  EXPECT_EQ(summary.frames(0).contents().least_bytes(), 512u);
  EXPECT_EQ(summary.frames(0).contents().most_bytes(), 8192u);
  EXPECT_EQ(summary.frames(1).contents().least_bytes(), 1024u);
  EXPECT_EQ(summary.frames(1).contents().most_bytes(), 1024u);
}

TEST(FrameContentsTest, AnEntryCoversAllFramesUpToTheNext) {
  FrameIndexBuilder builder;
  for (uint64_t i = 0; i < 100'000; ++i) {
    builder.Add(i, static_cast<int64_t>(i), i, Of(512 * i));
  }
  proto::Summary summary;
  builder.Store(&summary);
  ASSERT_EQ(summary.frames_size(), 3'125);
  for (int i = 0; i < summary.frames_size(); ++i) {
    const uint64_t first = 32 * static_cast<uint64_t>(i);
    EXPECT_EQ(summary.frames(i).contents().least_bytes(), 512 * first);
    EXPECT_EQ(summary.frames(i).contents().most_bytes(), 512 * (first + 31));
  }
}

// Frames of one read each, of 512, 1024, 1536 and 2048 bytes at 100, 200, 300 and 400, which
// arrive at 10, 20, 30 and 40; then the summary at 500.
proto::Summary FourFrames() {
  FrameIndexBuilder builder;
  for (uint64_t i = 1; i <= 4; ++i) {
    builder.Add(100 * i, static_cast<int64_t>(10 * i), i - 1, Of(512 * i));
  }
  proto::Summary summary;
  builder.Store(&summary);
  summary.set_records(4);
  summary.set_late_ns_max(0);
  summary.set_last_ns(40);
  return summary;
}

FrameChoice OfSize(uint64_t bytes) {
  return {.wanted = [bytes](const proto::FrameContents& contents) {
    return contents.least_bytes() <= bytes && contents.most_bytes() >= bytes;
  }};
}

TEST(FindSkipTest, GoesToTheNextFrameThatIsWanted) {
  const proto::Summary summary = FourFrames();
  const std::optional<FrameSkip> skip = FindSkip(summary, 500, OfSize(1536), 100);
  ASSERT_TRUE(skip);
  EXPECT_EQ(skip->from_bytes, 100u);
  EXPECT_EQ(skip->to_bytes, 300u);
  EXPECT_EQ(skip->to_record, 2u);
  EXPECT_FALSE(FindSkip(summary, 500, OfSize(1536), 300));
  EXPECT_FALSE(FindSkip(summary, 500, OfSize(1536), 150));
  const std::optional<FrameSkip> rest = FindSkip(summary, 500, OfSize(1536), 400);
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->to_bytes, 500u);
  EXPECT_EQ(rest->to_record, 4u);
  EXPECT_FALSE(FindSkip(summary, 500, OfSize(1536), 500));
}

TEST(FindSkipTest, ReadsWhatTheSummaryDoesNotDescribeOrNobodyMayMiss) {
  proto::Summary summary = FourFrames();
  summary.mutable_frames(1)->clear_contents();
  EXPECT_EQ(FindSkip(summary, 500, OfSize(9), 100)->to_bytes, 200u);
  EXPECT_FALSE(FindSkip(summary, 500, OfSize(9), 200));
  summary.mutable_frames(2)->mutable_contents()->set_others(true);
  EXPECT_FALSE(FindSkip(summary, 500, OfSize(9), 300));
  // An operation of a newer version.
  summary.mutable_frames(3)->mutable_contents()->set_ops(1u << kOpCount);
  EXPECT_FALSE(FindSkip(summary, 500, OfSize(9), 400));
}

TEST(FindSkipTest, LeavesTheEndOfAWindowToItsReader) {
  proto::Summary summary = FourFrames();
  FrameChoice choice = OfSize(9);
  choice.before_ns = 31;
  EXPECT_EQ(FindSkip(summary, 500, choice, 100)->to_bytes, 300u);  // 300 may arrive until 40
  summary.set_late_ns_max(2);  // that of 200 may arrive until 32
  EXPECT_EQ(FindSkip(summary, 500, choice, 100)->to_bytes, 200u);
  choice.before_ns = 41;
  EXPECT_EQ(FindSkip(summary, 500, choice, 400)->to_bytes, 500u);
  summary.clear_late_ns_max();
  EXPECT_FALSE(FindSkip(summary, 500, choice, 100));
}

TEST(FindSkipTest, NeverGoesBackOrBeyondTheSummary) {
  proto::Summary summary = FourFrames();
  EXPECT_FALSE(FindSkip(summary, 400, OfSize(9), 400));
  EXPECT_EQ(FindSkip(summary, 350, OfSize(9), 100)->to_bytes, 300u);
}

}  // namespace
}  // namespace blktape
