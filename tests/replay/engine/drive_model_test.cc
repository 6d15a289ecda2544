#include "replay/engine/drive_model.h"

#include <gtest/gtest.h>

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

TEST(NamedDriveTest, EachNameIsADriveAndOthersAreRefusedWithTheNames) {
  for (const char* name : {"reference", "nvme-2026", "sata-2011", "emmc-2018"}) {
    EXPECT_TRUE(DriveModelNamed(name).ok()) << name;
  }
  const auto none = DriveModelNamed("nvme-2062");
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.status().message().find("nvme-2026, sata-2011"), std::string::npos);
}

}  // namespace
}  // namespace blktape
