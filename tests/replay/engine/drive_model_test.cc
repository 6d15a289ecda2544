#include "replay/engine/drive_model.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace blktape
