#include "replay/plan/kept_blocks.h"

#include <cstdint>
#include <string>

#include "base/units.h"
#include "format/io_record.h"
#include "gtest/gtest.h"

namespace blktape {
namespace {

constexpr uint64_t kBlock = 4096;

// Of blocks [first, first + count).
IoRecord Io(Op op, uint64_t first, uint64_t count, uint32_t device = 0) {
  IoRecord io;
  io.device = device;
  io.op = op;
  io.lba = Lba(first * kBlock / kSectorBytes);
  io.bytes = count * kBlock;
  return io;
}

class KeptBlocksTest : public ::testing::Test {
 protected:
  void Replayed(const IoRecord& io) { blocks_.Add(io, /*replayed=*/true); }
  void LeftOut(const IoRecord& io) { blocks_.Add(io, /*replayed=*/false); }
  // What remains of a discard, in blocks; "nothing".
  std::string Remains(IoRecord discard) const {
    if (!blocks_.LeaveOut(&discard)) return "nothing";
    EXPECT_EQ(discard.lba->bytes() % kBlock + discard.bytes % kBlock, 0u);
    return std::to_string(discard.lba->bytes() / kBlock) + " to " +
           std::to_string((discard.lba->bytes() + discard.bytes) / kBlock);
  }

  KeptBlocks blocks_;
};

TEST_F(KeptBlocksTest, WhatIsReadAndWasWrittenBetweenWindowsIsLeftOutOfItsDiscard) {
  blocks_.Follow(Io(Op::kRead, 1020, 4));
  Replayed(Io(Op::kDiscard, 1000, 100));
  LeftOut(Io(Op::kWrite, 1000, 50));
  Replayed(Io(Op::kRead, 1020, 4));
  EXPECT_EQ(Remains(Io(Op::kDiscard, 1000, 100)), "1024 to 1100");
  EXPECT_EQ(Remains(Io(Op::kWriteZeroes, 1000, 30)), "1000 to 1020");
  EXPECT_EQ(Remains(Io(Op::kSecureErase, 1021, 2)), "nothing");
  EXPECT_EQ(Remains(Io(Op::kDiscard, 1000, 100, /*device=*/1)), "1000 to 1100");
  EXPECT_EQ(Remains(Io(Op::kWrite, 1000, 100)), "1000 to 1100");
}

TEST_F(KeptBlocksTest, OfEqualPartsTheFirstRemains) {
  blocks_.Follow(Io(Op::kRead, 10, 1));
  Replayed(Io(Op::kDiscard, 0, 21));
  LeftOut(Io(Op::kWrite, 10, 1));
  Replayed(Io(Op::kRead, 10, 1));
  EXPECT_EQ(Remains(Io(Op::kDiscard, 0, 21)), "0 to 10");
}

TEST_F(KeptBlocksTest, WhatTheWholeReadsAsDiscardedStaysSo) {
  blocks_.Follow(Io(Op::kRead, 0, 8));
  Replayed(Io(Op::kDiscard, 0, 8));
  Replayed(Io(Op::kRead, 0, 2));  // nothing has written it
  LeftOut(Io(Op::kWrite, 2, 2));  // and discarded it again
  LeftOut(Io(Op::kDiscard, 2, 2));
  Replayed(Io(Op::kRead, 2, 2));
  LeftOut(Io(Op::kWrite, 4, 2));  // likewise, within the sample
  Replayed(Io(Op::kDiscard, 4, 2));
  Replayed(Io(Op::kRead, 4, 2));
  EXPECT_EQ(Remains(Io(Op::kDiscard, 0, 8)), "0 to 8");
}

TEST_F(KeptBlocksTest, WhatTheSampleWritesOrNeverDiscardedOrDoesNotReadIsNoMatter) {
  blocks_.Follow(Io(Op::kRead, 0, 8));
  LeftOut(Io(Op::kWrite, 6, 2));
  Replayed(Io(Op::kRead, 6, 2));
  Replayed(Io(Op::kDiscard, 0, 6));
  LeftOut(Io(Op::kWrite, 0, 6));
  Replayed(Io(Op::kWrite, 0, 2));
  Replayed(Io(Op::kRead, 0, 2));
  LeftOut(Io(Op::kRead, 2, 2));
  EXPECT_EQ(Remains(Io(Op::kDiscard, 0, 8)), "0 to 8");
}

TEST_F(KeptBlocksTest, WhatTheNextRunReadsFirstIsNotLeftDiscarded) {
  blocks_.Follow(Io(Op::kRead, 0, 12));
  Replayed(Io(Op::kRead, 0, 6));
  Replayed(Io(Op::kDiscard, 0, 12));  // blocks 6 to 11 were not read before it
  Replayed(Io(Op::kWrite, 0, 2));     // 0 and 1 hold data at the end
  Replayed(Io(Op::kRead, 6, 6));
  EXPECT_EQ(Remains(Io(Op::kDiscard, 0, 12)), "0 to 12");
  blocks_.Finish();
  EXPECT_EQ(Remains(Io(Op::kDiscard, 0, 12)), "6 to 12");
  EXPECT_EQ(Remains(Io(Op::kDiscard, 0, 5)), "0 to 2");
}

TEST_F(KeptBlocksTest, APartOfABlockThatIsReadKeepsTheBlockAndOneDiscardedInPartIsNotEmpty) {
  IoRecord read;  // the last sector of block 9
  read.op = Op::kRead;
  read.lba = Lba(79);
  read.bytes = kSectorBytes;
  blocks_.Follow(read);
  blocks_.Follow(Io(Op::kRead, 20, 1));
  Replayed(Io(Op::kDiscard, 0, 20));
  IoRecord half = Io(Op::kDiscard, 20, 1);
  half.bytes /= 2;
  Replayed(half);
  LeftOut(Io(Op::kWrite, 0, 30));
  Replayed(read);
  Replayed(Io(Op::kRead, 20, 1));
  EXPECT_EQ(Remains(Io(Op::kDiscard, 0, 30)), "10 to 30");
}

TEST_F(KeptBlocksTest, OnlySoManyPiecesAreFollowed) {
  KeptBlocks few(/*most_pieces=*/2);
  for (uint64_t piece = 0; piece < 3; ++piece) few.Follow(Io(Op::kRead, piece * 512, 1));
  for (uint64_t piece = 0; piece < 3; ++piece) few.Add(Io(Op::kRead, piece * 512, 1), true);
  few.Add(Io(Op::kDiscard, 0, 3 * 512), true);
  few.Finish();
  IoRecord discard = Io(Op::kDiscard, 512, 1);
  EXPECT_FALSE(few.LeaveOut(&discard));
  discard = Io(Op::kDiscard, 1024, 1);
  EXPECT_TRUE(few.LeaveOut(&discard));
}

TEST_F(KeptBlocksTest, AtTheEndsOfTheAddressesNothingWrapsAround) {
  IoRecord last;
  last.op = Op::kRead;
  last.lba = Lba(UINT64_MAX);
  last.bytes = kBlock;
  blocks_.Follow(last);
  blocks_.Follow(Io(Op::kRead, 0, 1));
  last.op = Op::kDiscard;
  last.bytes = UINT64_MAX;
  Replayed(last);
  Replayed(Io(Op::kDiscard, 0, 1));
  LeftOut(Io(Op::kWrite, 0, 1));
  Replayed(Io(Op::kRead, 0, 1));
  EXPECT_EQ(Remains(Io(Op::kDiscard, 0, 2)), "1 to 2");
}

}  // namespace
}  // namespace blktape
