#include "replay/engine/drive_model.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

namespace blktape {
namespace {

// Expectations are worked by hand from the rules in drive_model.h.
class DriveModelTest : public testing::Test {
 protected:
  DriveSimulator drive_{DriveModel{}};
};

TEST_F(DriveModelTest, ALoneReadTakesItsBaseAndItsTransfer) {
  // 80 us + 4096 B / 2 GB/s = 2.048 us.
  EXPECT_EQ(drive_.Accept(Op::kRead, 0, 4096, 1'000'000), 1'000'000 + 80'000 + 2'048);
}

TEST_F(DriveModelTest, ALoneWriteTakesItsBaseAndItsTransfer) {
  // 25 us + 128 KiB / 1 GB/s = 131.072 us.
  EXPECT_EQ(drive_.Accept(Op::kWrite, 0, 131'072, 0), 25'000 + 131'072);
}

TEST_F(DriveModelTest, EightReadsAtOnceShareOnlyTheLink) {
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(drive_.Accept(Op::kRead, 0, 4096, 0), 80'000 + (i + 1) * 2'048);
  }
}

TEST_F(DriveModelTest, TheNinthReadWaitsForAChannel) {
  for (int i = 0; i < 8; ++i) drive_.Accept(Op::kRead, 0, 4096, 0);
  EXPECT_EQ(drive_.Accept(Op::kRead, 0, 4096, 0), 2 * 80'000 + 2'048);
}

TEST_F(DriveModelTest, AWriteDoesNotWaitForTheReadsTransfer) {
  drive_.Accept(Op::kRead, 0, 1 << 20, 0);
  EXPECT_EQ(drive_.Accept(Op::kWrite, 0, 4096, 0), 25'000 + 4'096);
}

TEST_F(DriveModelTest, AFlushWaitsForEarlierWritesAndPaysForWhatTheyLeftInTheCache) {
  drive_.Accept(Op::kWrite, 0, 4096, 0);  // complete at 29,096
  EXPECT_EQ(drive_.Accept(Op::kFlush, 0, 0, 10), 29'096 + 500'000 + 2'048);
}

TEST_F(DriveModelTest, AFlushWithNothingToWriteBackIsCheap) {
  EXPECT_EQ(drive_.Accept(Op::kFlush, 0, 0, 7), 7 + 20'000);
  drive_.Accept(Op::kWrite, kFlagFua, 4096, 100'000);  // went to flash itself: 529,096
  EXPECT_EQ(drive_.Accept(Op::kFlush, 0, 0, 1'000'000), 1'020'000);
}

TEST_F(DriveModelTest, AFlushPaysForNoMoreThanTheCacheHolds) {
  const int64_t written_ns = drive_.Accept(Op::kWrite, 0, 1ull << 30, 0);
  // 64 MiB / 2 GB/s = 33,554,432 ns.
  EXPECT_EQ(drive_.Accept(Op::kFlush, 0, 0, 0), written_ns + 500'000 + 33'554'432);
}

TEST_F(DriveModelTest, LaterRequestsDoNotWaitForAFlush) {
  drive_.Accept(Op::kWrite, 0, 4096, 0);
  drive_.Accept(Op::kFlush, 0, 0, 0);
  EXPECT_EQ(drive_.Accept(Op::kRead, 0, 4096, 0), 82'048);
}

TEST_F(DriveModelTest, FlushesGoOneByOne) {
  drive_.Accept(Op::kFlush, 0, 0, 0);
  EXPECT_EQ(drive_.Accept(Op::kFlush, 0, 0, 0), 40'000);
}

TEST_F(DriveModelTest, AJournalCommitIsFlushThenWriteThenFua) {
  drive_.Accept(Op::kWrite, 0, 4096, 0);  // complete at 29,096
  EXPECT_EQ(drive_.Accept(Op::kWrite, kFlagPreflush | kFlagFua, 4096, 0),
            29'096 + 500'000 + 2'048 + 25'000 + 4'096 + 400'000);
}

TEST_F(DriveModelTest, ADiscardOfTerabytesDoesNotOverflow) {
  // 8 TiB / 1 TB/s = 8.796093022208 s.
  EXPECT_EQ(drive_.Accept(Op::kDiscard, 0, 8ull << 40, 0), 50'000 + 8'796'093'022);
}

// A buffer of 1 MB that is emptied at 100 MB/s after 10 ms of idle time; 1 GB/s into it, 100 MB/s
// when it is full.
DriveModel Buffered() {
  DriveModel model;
  model.buffer_bytes = 1'000'000;
  model.full_write_bandwidth = 100'000'000;
  model.collect_bandwidth = 100'000'000;
  model.collect_after_ns = 10'000'000;
  return model;
}

TEST(BufferedDriveTest, WhatFindsTheBufferFullMovesAtTheLowerRate) {
  DriveSimulator drive(Buffered());
  // 25 us + 600 kB at 1 GB/s.
  EXPECT_EQ(drive.Accept(Op::kWrite, 0, 600'000, 0), 25'000 + 600'000);
  // 400 kB fit: 400 us; 200 kB do not: 2,000 us. Right after the first, before 10 ms have passed.
  EXPECT_EQ(drive.Accept(Op::kWrite, 0, 600'000, 1'000'000), 1'000'000 + 25'000 + 2'400'000);
}

TEST(BufferedDriveTest, IdleTimeEmptiesTheBufferButOnlyAfterAWhile) {
  DriveSimulator early(Buffered());
  const int64_t full_ns = early.Accept(Op::kWrite, 0, 1'000'000, 0);
  EXPECT_EQ(early.Accept(Op::kWrite, 0, 100'000, full_ns + 10'000'000),
            full_ns + 10'000'000 + 25'000 + 1'000'000)
      << "not yet";
  DriveSimulator later(Buffered());
  later.Accept(Op::kWrite, 0, 1'000'000, 0);
  // 0.5 ms of collecting make room for 50 kB: 50 us; the other 50 kB take 500 us.
  EXPECT_EQ(later.Accept(Op::kWrite, 0, 100'000, full_ns + 10'500'000),
            full_ns + 10'500'000 + 25'000 + 50'000 + 500'000);
  DriveSimulator read(Buffered());
  read.Accept(Op::kWrite, 0, 1'000'000, 0);
  // A read in between is no idle time: after it 10 ms begin anew.
  const int64_t read_ns = read.Accept(Op::kRead, 0, 4096, full_ns + 9'000'000);
  EXPECT_EQ(read.Accept(Op::kWrite, 0, 100'000, read_ns + 9'000'000),
            read_ns + 9'000'000 + 25'000 + 1'000'000);
}

TEST(BufferedDriveTest, TheDriveOf2026FillsItsBufferAndFindsItEmptyAfterItsCollection) {
  DriveSimulator drive(*DriveModelNamed("nvme-2026"));
  const uint64_t block = 1ull << 20;
  int64_t now_ns = 0;
  const auto write = [&](uint64_t blocks) {
    const int64_t begin_ns = now_ns;
    for (uint64_t i = 0; i < blocks; ++i) now_ns = drive.Accept(Op::kWrite, 0, block, now_ns);
    return static_cast<double>(blocks * block) / static_cast<double>(now_ns - begin_ns);  // GB/s
  };
  // 12 us and 262.144 us at 4 GB/s: 3.825 GB/s, until 4 GiB are written; then 4,194.304 us.
  EXPECT_NEAR(write(4096), 1'048'576 / 274'144.0, 1e-3);
  EXPECT_NEAR(write(256), 1'048'576 / 4'206'304.0, 1e-4);
  // 0.5 s and 10.73741824 s at 100 MB/s: a quarter of the buffer is free again.
  now_ns += 500'000'000 + 10'737'418'240;
  EXPECT_NEAR(write(1024), 1'048'576 / 274'144.0, 1e-3);
  EXPECT_NEAR(write(1), 1'048'576 / 4'206'304.0, 1e-4);
}

// A turn of 8 ms, of which a byte takes 10 ns: a track of 800,000 bytes.
DriveModel Disk() {
  DriveModel model;
  model.rotation_ns = 8'000'000;
  model.seek_least_ns = 1'000'000;
  model.seek_full_ns = 15'000'000;
  model.span_bytes = 1'600'000'000;
  model.read_bandwidth = 100'000'000;
  model.write_bandwidth = 200'000'000;
  model.write_base_ns = 100'000;
  model.flush_base_ns = 500'000;
  model.clean_flush_ns = 50'000;
  model.cache_bytes = 1'000'000;
  return model;
}

TEST(DiskTest, AReadWaitsForArmAndPlatter) {
  DriveSimulator disk(Disk());
  // A quarter of the span, whose root is a half: 1 + 14 / 2 = 8 ms, one turn exactly. The place of
  // byte 400,000,000 is the beginning of track 500: no wait. 4,000 bytes: 40 us.
  EXPECT_EQ(disk.Accept(Op::kRead, 0, 4'000, 0, 400'000'000), 8'040'000);
  // Where the last one ended: transfer alone, also later.
  EXPECT_EQ(disk.Accept(Op::kRead, 0, 4'000, 20'000'000, 400'004'000), 20'040'000);
  // Back by 8,000 bytes: root of 8,000 / 1.6e9 = 0.00223607, 1,031,304 ns, at 31,031,304 ns, which
  // is 7,031,304 ns into the fourth turn; the place is the next turn's beginning, 32 ms.
  EXPECT_EQ(disk.Accept(Op::kRead, 0, 4'000, 30'000'000, 400'000'000), 32'040'000);
}

TEST(DiskTest, ReadsQueueForTheOneArm) {
  DriveSimulator disk(Disk());
  EXPECT_EQ(disk.Accept(Op::kRead, 0, 4'000, 0, 400'000'000), 8'040'000);
  EXPECT_EQ(disk.Accept(Op::kRead, 0, 4'000, 0, 400'004'000), 8'080'000);
}

TEST(DiskTest, WritesGoToTheCacheAndAFlushPaysForTheirPlaces) {
  DriveSimulator disk(Disk());
  // 100 us and 4,000 bytes at 200 MB/s.
  EXPECT_EQ(disk.Accept(Op::kWrite, 0, 4'000, 0, 400'000'000), 120'000);
  // Owed: 8 ms of seek, 2 ms of turning, 40 us. A flush takes 0.5 ms more.
  EXPECT_EQ(disk.Accept(Op::kFlush, 0, 0, 120'000), 120'000 + 10'040'000 + 500'000);
  EXPECT_EQ(disk.Accept(Op::kFlush, 0, 0, 20'000'000), 20'050'000) << "nothing is owed";
  // Of ten writes one after the other the first alone is positioned.
  DriveSimulator stream(Disk());
  int64_t now_ns = 0;
  for (uint64_t i = 0; i < 10; ++i) {
    now_ns = stream.Accept(Op::kWrite, 0, 4'000, now_ns, 400'000'000 + i * 4'000);
  }
  EXPECT_EQ(stream.Accept(Op::kFlush, 0, 0, now_ns), now_ns + 10'400'000 + 500'000);
}

TEST(DiskTest, IdleTimePaysWhatIsOwed) {
  DriveSimulator disk(Disk());
  disk.Accept(Op::kWrite, 0, 4'000, 0, 400'000'000);  // complete at 120 us, 10.04 ms owed
  EXPECT_EQ(disk.Accept(Op::kFlush, 0, 0, 5'120'000), 5'120'000 + 5'040'000 + 500'000);
}

TEST(DiskTest, AFullCacheWaitsForTheBytesThatLack) {
  DriveSimulator disk(Disk());
  // 1 MB fills the cache: 100 us, 5 ms; owed 8 + 2 + 10 ms.
  EXPECT_EQ(disk.Accept(Op::kWrite, 0, 1'000'000, 0, 400'000'000), 5'100'000);
  // 100,000 bytes lack: a tenth of 20 ms, then 100 us and 0.5 ms.
  EXPECT_EQ(disk.Accept(Op::kWrite, 0, 100'000, 5'100'000, 401'000'000), 5'100'000 + 2'600'000);
}

TEST(DiskTest, AWriteWithFuaIsPutInItsPlace) {
  DriveSimulator disk(Disk());
  EXPECT_EQ(disk.Accept(Op::kWrite, kFlagFua, 4'000, 0, 400'000'000), 8'040'000);
  EXPECT_EQ(disk.Accept(Op::kFlush, 0, 0, 10'000'000), 10'050'000);
}

TEST(DiskTest, RandomReadsOfTheDiskOf2013TakeItsMeanSeekAndHalfATurn) {
  const DriveModel model = *DriveModelNamed("hdd-2013");
  DriveSimulator disk(model);
  std::mt19937_64 random(1);
  std::uniform_int_distribution<uint64_t> block(0, model.span_bytes / 4096 - 1);
  int64_t now_ns = 0;
  constexpr int kReads = 20'000;
  for (int i = 0; i < kReads; ++i) {
    now_ns = disk.Accept(Op::kRead, 0, 4096, now_ns, block(random) * 4096);
  }
  // The mean root of the distance of two points of [0, 1] is 8/15: 1 + 14 * 8/15 = 8.467 ms; half a
  // turn 4.167 ms; 26.3 us of transfer.
  EXPECT_NEAR(static_cast<double>(now_ns) / kReads / 1e6, 8.467 + 4.167 + 0.026, 0.1);
}

TEST(NamedDriveTest, EachNameIsADriveAndOthersAreRefusedWithTheNames) {
  for (const char* name : {"reference", "nvme-2026", "sata-2011", "emmc-2018", "hdd-2013"}) {
    EXPECT_TRUE(DriveModelNamed(name).ok()) << name;
  }
  const auto none = DriveModelNamed("nvme-2062");
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.status().message().find("nvme-2026, sata-2011"), std::string::npos);
}

}  // namespace
}  // namespace blktape
