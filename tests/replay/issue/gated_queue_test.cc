#include "replay/issue/gated_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

namespace blktape {
namespace {

constexpr int64_t kStartNs = 1'000;

PlannedIo Step(uint64_t sequence, uint32_t chain, int64_t think_ns, uint32_t slot,
               std::initializer_list<uint32_t> gates = {}) {
  PlannedIo io{.chain = chain, .offset_ns = think_ns, .sequence = sequence, .gate_slot = slot};
  for (const uint32_t gate : gates) io.required[io.required_count++] = gate;
  return io;
}

class GatedQueueTest : public testing::Test {
 protected:
  explicit GatedQueueTest(uint32_t capacity = 8) : queue_(capacity, 8) { queue_.Start(kStartNs); }
  void Add(const PlannedIo& step) { queue_.Add(step, INT64_MIN); }
  // Takes the next, which is to be this one.
  uint32_t Take(uint64_t sequence, int64_t due_ns) {
    EXPECT_EQ(queue_.NextDueNs(), due_ns);
    const GatedQueue::Taken taken = queue_.Take();
    EXPECT_EQ(taken.io.sequence, sequence);
    EXPECT_EQ(taken.due_ns, due_ns);
    return taken.gate;
  }
  GatedQueue queue_;
};

TEST_F(GatedQueueTest, OneThatWaitsHoldsBackNoOtherChain) {
  Add(Step(0, 0, 0, 0));
  Add(Step(1, 0, 50, 1, {0}));
  Add(Step(2, 1, 20, 2));
  const uint32_t first = Take(0, kStartNs);
  Take(2, kStartNs + 20);
  EXPECT_EQ(queue_.NextDueNs(), INT64_MAX);
  queue_.Complete(first, 5'000);
  Take(1, 5'050);
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(GatedQueueTest, AChainKeepsItsOrder) {
  Add(Step(0, 0, 0, 0));
  Add(Step(1, 0, 100, 1, {0}));
  Add(Step(2, 0, 30, 2));  // waits for all its chain was told, and is not due before 1
  const uint32_t first = Take(0, kStartNs);
  queue_.Complete(first, 2'000);
  Take(1, 2'100);
  Take(2, 2'100);
}

TEST_F(GatedQueueTest, TheLastOfSeveralGatesDecides) {
  Add(Step(0, 0, 0, 0));
  Add(Step(1, 1, 0, 1));
  Add(Step(2, 2, 7, 2, {0, 1}));
  const uint32_t a = Take(0, kStartNs);
  const uint32_t b = Take(1, kStartNs);
  queue_.Complete(b, 3'000);
  EXPECT_EQ(queue_.NextDueNs(), INT64_MAX);
  queue_.Complete(a, 2'500);  // booked later, though it ended before
  Take(2, 3'007);
}

// I/O 0 is complete 30 before that is seen: of 100 that is thought after it 70 are left, of 20
// none.
TEST_F(GatedQueueTest, WhatIsSeenLateIsThoughtAboutForLess) {
  PlannedIo late = Step(0, 1, 0, 0);
  late.host_ns = 30;
  Add(late);
  Add(Step(1, 2, 0, 1));
  Add(Step(10, 1, 100, 2, {0}));
  Add(Step(11, 3, 20, 3, {0}));
  Add(Step(12, 4, 25, 4, {0, 1}));
  const uint32_t first = Take(0, kStartNs);
  const uint32_t other = Take(1, kStartNs);
  queue_.Complete(first, 2'000);
  Take(11, 2'000);
  Take(10, 2'070);
  queue_.Complete(other, 2'080);
  Take(12, 2'105);
}

// Both are due when that is seen; the one that thinks for less comes first all the same.
TEST_F(GatedQueueTest, WhatIsDueWhenThatIsSeenKeepsTheOrderItWasMeantToHave) {
  PlannedIo late = Step(0, 1, 0, 0);
  late.host_ns = 100;
  Add(late);
  Add(Step(10, 2, 90, 1, {0}));
  Add(Step(11, 3, 60, 2, {0}));
  queue_.Complete(Take(0, kStartNs), 2'000);
  Take(11, 2'000);
  Take(10, 2'000);
}

TEST_F(GatedQueueTest, AGateThatIsCompleteAlreadyCountsFromThen) {
  Add(Step(0, 0, 0, 0));
  queue_.Complete(Take(0, kStartNs), 4'000);
  Add(Step(1, 3, 10, 1, {0}));
  Take(1, 4'010);
}

// Slot 0 goes to another I/O while its former owner is still out.
TEST_F(GatedQueueTest, ASlotMeansWhoHadItWhenTheStepCame) {
  Add(Step(0, 0, 0, 0));
  Add(Step(1, 1, 5, 1, {0}));
  Add(Step(2, 2, 0, 0));
  Add(Step(3, 3, 5, 3, {0}));
  const uint32_t former = Take(0, kStartNs);
  const uint32_t owner = Take(2, kStartNs);
  queue_.Complete(owner, 2'000);
  Take(3, 2'005);
  queue_.Complete(former, 3'000);
  Take(1, 3'005);
}

TEST_F(GatedQueueTest, GatesMayComeInStepsOfTheirOwn) {
  for (uint32_t i = 0; i < 7; ++i) Add(Step(i, i, 0, i));
  PlannedIo gates = Step(0, 0, 0, kNoGateSlot, {0, 1, 2, 3, 4, 5});
  gates.kind = PlannedIo::Kind::kGates;
  Add(gates);
  EXPECT_EQ(queue_.size(), 7u);
  uint32_t out[7];
  for (uint32_t i = 0; i < 7; ++i) out[i] = Take(i, kStartNs);
  for (uint32_t i = 0; i < 5; ++i) queue_.Complete(out[i], 2'000 + i);
  Add(Step(7, 7, 1, 7, {6}));
  queue_.Complete(out[6], 2'100);
  EXPECT_EQ(queue_.NextDueNs(), INT64_MAX);
  queue_.Complete(out[5], 2'200);
  Take(7, 2'201);
}

TEST_F(GatedQueueTest, AmongEqualDueTimesThePlanDecides) {
  Add(Step(0, 5, 10, 0));
  Add(Step(1, 4, 10, 1));
  Add(Step(2, 3, 9, 2));
  Take(2, kStartNs + 9);
  Take(0, kStartNs + 10);
  Take(1, kStartNs + 10);
}

TEST_F(GatedQueueTest, ItIsFullAtItsCapacityAndRunsForever) {
  for (uint64_t i = 0; i < 8; ++i) {
    EXPECT_TRUE(queue_.HasRoom());
    Add(Step(i, 0, 0, static_cast<uint32_t>(i)));
  }
  EXPECT_FALSE(queue_.HasRoom());
  for (uint64_t i = 0; i < 200'000; ++i) {
    const GatedQueue::Taken taken = queue_.Take();
    ASSERT_EQ(taken.io.sequence, i);
    queue_.Complete(taken.gate, kStartNs + static_cast<int64_t>(i));
    ASSERT_TRUE(queue_.HasRoom());
    // The slot of the one just taken is the newest's; waits for the one before.
    Add(Step(i + 8, (i + 8) % 3, 0, static_cast<uint32_t>(i % 8),
             {static_cast<uint32_t>((i + 7) % 8)}));
  }
}

using Part = Dependencies::CommitPart;

constexpr uint32_t kAfterThink = Dependencies::kWhileWriting | Dependencies::kAfterThink;
constexpr uint32_t kToTheEnd = Dependencies::kWhileWriting | Dependencies::kToTheEnd;

// Two threads ask for a commit of the journal on chain 7: the first one's write has slot 0, the
// other's slot 1. Its copies are I/Os 10 and 11, 20 and 21; what follows them, I/Os 30 and 40.
class SharedCommitTest : public GatedQueueTest {
 protected:
  static PlannedIo Commit(PlannedIo io, uint8_t copy, Part part, bool asked = true) {
    io.commit_part = part;
    io.commit_copy = copy;
    io.asked = asked;
    return io;
  }
  SharedCommitTest() : GatedQueueTest(64) {}
  void AddFirstCopy() {
    Add(Commit(Step(10, 7, 50, 2, {0}), 0, Part::kBegins));
    Add(Commit(Step(11, 7, 5, 3, {2}), 0, Part::kEnds));
  }
  void AddSecondCopy() {
    Add(Commit(Step(20, 7, 20, 4, {1}), 1, Part::kBegins));
    Add(Commit(Step(21, 7, 5, 5, {4}), 1, Part::kEnds));
  }
  // After AddAll() and I/O 45, whose slot is 8: that, and what the first copy waits for, is
  // complete when that begins; what the second one waits for once it has. Returns I/O 10.
  uint32_t BeginFirstCopy() {
    const uint32_t first = Take(0, kStartNs);
    const uint32_t second = Take(1, kStartNs);
    const uint32_t other = Take(45, kStartNs);
    queue_.Complete(first, 2'000);
    queue_.Complete(other, 2'010);
    const uint32_t written = Take(10, 2'050);
    queue_.Complete(second, 2'060);
    return written;
  }
  void AddAll() {
    Add(Step(0, 1, 0, 0));
    Add(Step(1, 2, 0, 1));
    AddFirstCopy();
    AddSecondCopy();
    Add(Step(30, 1, 100, 6, {3}));
    Add(Step(40, 2, 200, 7, {5}));
  }
  std::vector<uint64_t> LeftOut() {
    std::vector<uint64_t> all;
    PlannedIo io;
    while (queue_.TakeLeftOut(&io)) all.push_back(io.sequence);
    return all;
  }
};

TEST_F(SharedCommitTest, WhoAskedBeforeItBeginsSharesIt) {
  AddAll();
  const uint32_t first = Take(0, kStartNs);
  const uint32_t second = Take(1, kStartNs);
  queue_.Complete(first, 2'000);   // asks, due at 2,050
  queue_.Complete(second, 2'010);  // due at 2,030
  const uint32_t written = Take(20, 2'030);
  EXPECT_EQ(queue_.NextDueNs(), INT64_MAX) << "one at a time";
  queue_.Complete(written, 2'100);
  const uint32_t record = Take(21, 2'105);
  EXPECT_THAT(LeftOut(), testing::IsEmpty()) << "the other is still needed should this one fail";
  queue_.Complete(record, 3'000);
  EXPECT_THAT(LeftOut(), testing::UnorderedElementsAre(10, 11));
  Take(30, 3'100);
  Take(40, 3'200);
  EXPECT_EQ(queue_.size(), 0u);
  EXPECT_EQ(queue_.commits().recorded, 1u);
  EXPECT_EQ(queue_.commits().written, 1u);
  EXPECT_EQ(queue_.commits().left_out, 2u);
}

TEST_F(SharedCommitTest, WhoAskedInTheMomentItBeginsSharesItToo) {
  AddAll();
  const uint32_t first = Take(0, kStartNs);
  const uint32_t second = Take(1, kStartNs);
  queue_.Complete(first, 2'000);
  queue_.Complete(second, 2'050);
  queue_.Complete(Take(10, 2'050), 2'100);
  queue_.Complete(Take(11, 2'105), 3'000);
  EXPECT_THAT(LeftOut(), testing::UnorderedElementsAre(20, 21));
}

TEST_F(SharedCommitTest, WhoAsksMeanwhileHasTheNext) {
  AddAll();
  const uint32_t first = Take(0, kStartNs);
  const uint32_t second = Take(1, kStartNs);
  queue_.Complete(first, 2'000);
  const uint32_t written = Take(10, 2'050);
  queue_.Complete(second, 2'051);
  queue_.Complete(written, 2'100);
  const uint32_t record = Take(11, 2'105);
  EXPECT_EQ(queue_.NextDueNs(), INT64_MAX);
  queue_.Complete(record, 3'000);
  EXPECT_THAT(LeftOut(), testing::IsEmpty());
  const uint32_t next = Take(20, 3'020);  // its think time begins when the journal rests
  Take(30, 3'100);
  queue_.Complete(next, 3'200);
  queue_.Complete(Take(21, 3'205), 4'000);
  Take(40, 4'200);
  EXPECT_EQ(queue_.commits().recorded, 1u);
  EXPECT_EQ(queue_.commits().written, 2u) << "once more than it was recorded";
}

TEST_F(SharedCommitTest, WhatNobodyAskedForIsWrittenInItsTurn) {
  Add(Step(0, 1, 0, 0));
  Add(Commit(Step(10, 7, 50, 2, {0}), 0, Part::kBegins));
  Add(Commit(Step(11, 7, 5, 3, {2}), 0, Part::kEnds));
  Add(Commit(Step(20, 7, 20, 4), 0, Part::kBegins, /*asked=*/false));
  Add(Commit(Step(21, 7, 5, 5, {4}), 0, Part::kEnds, /*asked=*/false));
  queue_.Complete(Take(0, kStartNs), kStartNs + 10);
  const uint32_t written = Take(20, kStartNs + 20);
  queue_.Complete(written, kStartNs + 100);
  queue_.Complete(Take(21, kStartNs + 105), 2'000);
  EXPECT_THAT(LeftOut(), testing::UnorderedElementsAre(10, 11))
      << "which had been asked for by then";
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(SharedCommitTest, WhatIsLeftOutIsSoWhenItComesLater) {
  Add(Step(0, 1, 0, 0));
  Add(Step(1, 2, 0, 1));
  AddFirstCopy();
  Add(Commit(Step(20, 7, 90, 4, {1}), 1, Part::kBegins));
  const uint32_t first = Take(0, kStartNs);
  queue_.Complete(Take(1, kStartNs), 2'000);
  queue_.Complete(first, 2'000);
  queue_.Complete(Take(10, 2'050), 2'100);
  queue_.Complete(Take(11, 2'105), 3'000);
  EXPECT_THAT(LeftOut(), testing::ElementsAre(20));
  Add(Commit(Step(21, 7, 5, 5, {4}), 1, Part::kEnds));
  Add(Step(40, 2, 200, 7, {5}));
  EXPECT_THAT(LeftOut(), testing::ElementsAre(21));
  Take(40, 3'200);
}

// I/Os 31 and 41, of slots 8 and 9, are needed only if their threads' copies are left out; I/Os 32
// and 42 follow them.
class FlushAfterCommitTest : public SharedCommitTest {
 protected:
  void AddFlushes() {
    Add(Step(31, 1, 30, 8, {3 | Dependencies::kIfLeftOut}));
    Add(Step(32, 1, 100, 10, {8}));
    Add(Step(41, 2, 30, 9, {5 | Dependencies::kIfLeftOut}));
    Add(Step(42, 2, 200, 11, {9}));
  }
  // The second copy is written, until 3,000.
  void AddAndWriteSecondCopy(bool flushes_come_first) {
    Add(Step(0, 1, 0, 0));
    Add(Step(1, 2, 0, 1));
    AddFirstCopy();
    AddSecondCopy();
    if (flushes_come_first) AddFlushes();
    const uint32_t first = Take(0, kStartNs);
    queue_.Complete(Take(1, kStartNs), 2'000);
    queue_.Complete(first, 2'010);
    queue_.Complete(Take(20, 2'020), 2'100);
    queue_.Complete(Take(21, 2'105), 3'000);
    if (!flushes_come_first) AddFlushes();
  }
  void ExpectTheFirstOneAlone() {
    EXPECT_THAT(LeftOut(), testing::UnorderedElementsAre(10, 11, 41));
    const uint32_t flush = Take(31, 3'030);
    Take(42, 3'200);
    EXPECT_EQ(queue_.NextDueNs(), INT64_MAX);
    queue_.Complete(flush, 3'500);
    Take(32, 3'600);
    EXPECT_EQ(queue_.size(), 0u);
  }
};

TEST_F(FlushAfterCommitTest, ItIsNeededOnlyIfTheCommitWasLeftOut) {
  AddAndWriteSecondCopy(/*flushes_come_first=*/true);
  ExpectTheFirstOneAlone();
}

TEST_F(FlushAfterCommitTest, SoItIsWhereItComesLater) {
  AddAndWriteSecondCopy(/*flushes_come_first=*/false);
  ExpectTheFirstOneAlone();
}

// I/O 50 changes what the journal writes, if it writes; its other gate is slot 8.
TEST_F(SharedCommitTest, WhatAJournalWritesHoldsOthersUpUntilTheRecordIsIssued) {
  AddAll();
  Add(Step(45, 3, 0, 8));
  Add(Step(50, 4, 7, 9, {8, 3 | Dependencies::kWhileWriting}));
  const uint32_t first = Take(0, kStartNs);
  Take(1, kStartNs);
  const uint32_t other = Take(45, kStartNs);
  queue_.Complete(first, 2'000);
  queue_.Complete(other, 2'010);  // it will write at once
  const uint32_t written = Take(10, 2'050);
  EXPECT_EQ(queue_.NextDueNs(), INT64_MAX);
  queue_.Complete(written, 2'100);
  Take(11, 2'105);
  Take(50, 2'107);
}

TEST_F(SharedCommitTest, AJournalThatDoesNotWriteHoldsNobodyUp) {
  AddAll();
  Add(Step(45, 3, 0, 8));
  Add(Step(50, 4, 7, 9, {8, 3 | Dependencies::kWhileWriting}));
  Take(0, kStartNs);
  Take(1, kStartNs);
  queue_.Complete(Take(45, kStartNs), 2'000);
  Take(50, 2'007);
}

// The same when its think time is over: what is written before that or after does not matter. I/O
// 50 is due when a commit will begin at once.
TEST_F(SharedCommitTest, WhatAJournalWritesHoldsUpWhoIsDueMeanwhile) {
  AddAll();
  Add(Step(45, 3, 0, 8));
  Add(Step(50, 4, 7, 9, {8, kAfterThink | 3}));
  PlannedIo held = Step(51, 5, 70, 10, {8, kAfterThink | 3});
  held.goes_on_ns = 3;
  Add(held);
  Add(Step(52, 6, 1'490, 11, {8, kAfterThink | 3}));
  const uint32_t written = BeginFirstCopy();
  EXPECT_EQ(queue_.NextDueNs(), INT64_MAX);
  queue_.Complete(written, 2'100);
  Take(50, 2'100);
  Take(51, 2'103);
  queue_.Complete(Take(11, 2'105), 3'000);
  const uint32_t next = Take(20, 3'020);
  Take(30, 3'100);
  EXPECT_EQ(queue_.NextDueNs(), INT64_MAX);
  queue_.Complete(next, 3'600);
  Take(52, 3'600);
}

// I/O 50 waits for a commit, 51 for that and for what the next one writes.
TEST_F(SharedCommitTest, WhoWaitsToTheEndOfACommitGoesOnWithThatOrWithTheNext) {
  AddAll();
  Add(Step(45, 3, 0, 8));
  Add(Step(50, 4, 7, 9, {8, kToTheEnd | 3}));
  Add(Step(51, 5, 7, 10, {8, kToTheEnd | Dependencies::kAndTheNext | 3}));
  const uint32_t written = BeginFirstCopy();
  queue_.Complete(written, 2'100);
  const uint32_t record = Take(11, 2'105);
  EXPECT_EQ(queue_.NextDueNs(), INT64_MAX);
  queue_.Complete(record, 3'000);
  Take(50, 3'007);
  const uint32_t next = Take(20, 3'020);
  queue_.Complete(next, 3'050);
  Take(21, 3'055);
  Take(51, 3'057);
}

// I/O 50 waits for a commit, thinks for 60, and then for what the next one writes.
TEST_F(SharedCommitTest, OneMayWaitBeforeItThinksAndAfter) {
  AddAll();
  Add(Step(45, 3, 0, 8));
  PlannedIo twice = Step(50, 4, 60, 9, {8, kToTheEnd | 3, kAfterThink | 3});
  twice.goes_on_ns = 7;
  Add(twice);
  const uint32_t written = BeginFirstCopy();
  queue_.Complete(written, 2'100);
  queue_.Complete(Take(11, 2'105), 3'000);
  const uint32_t next = Take(20, 3'020);
  Take(30, 3'100);
  EXPECT_EQ(queue_.NextDueNs(), INT64_MAX);
  queue_.Complete(next, 3'600);
  Take(21, 3'605);
  Take(50, 3'607);
}

// The same, but no commit is under way when it opens: what it waits for after that is not the end.
TEST_F(SharedCommitTest, WhoFindsNoCommitToTheEndOfWhichToWaitWaitsForWritesAfterwards) {
  AddAll();
  Add(Step(45, 3, 0, 8));
  PlannedIo after = Step(50, 4, 70, 9, {8, kToTheEnd | 3, kAfterThink | 3});
  after.goes_on_ns = 7;
  Add(after);
  const uint32_t first = Take(0, kStartNs);
  Take(1, kStartNs);
  queue_.Complete(Take(45, kStartNs), 1'990);
  queue_.Complete(first, 2'000);
  const uint32_t written = Take(10, 2'050);
  EXPECT_EQ(queue_.NextDueNs(), INT64_MAX);
  queue_.Complete(written, 2'100);
  Take(11, 2'105);
  Take(50, 2'107);
}

// As in XFS: the record is all of it.
TEST_F(SharedCommitTest, ACommitOfOneWriteIsSharedToo) {
  Add(Step(0, 1, 0, 0));
  Add(Step(1, 2, 0, 1));
  Add(Step(2, 3, 0, 8));
  Add(Commit(Step(10, 7, 50, 2, {0}), 0, Part::kWhole));
  Add(Commit(Step(20, 7, 20, 4, {1}), 1, Part::kWhole));
  Add(Commit(Step(21, 7, 30, 5, {8}), 0, Part::kWhole));
  Add(Step(30, 1, 100, 6, {2}));
  Add(Step(40, 2, 200, 7, {4}));
  const uint32_t first = Take(0, kStartNs);
  const uint32_t second = Take(1, kStartNs);
  const uint32_t third = Take(2, kStartNs);
  queue_.Complete(first, 2'000);
  queue_.Complete(second, 2'010);
  const uint32_t record = Take(20, 2'030);
  queue_.Complete(third, 2'031);  // it comes too late
  EXPECT_EQ(queue_.NextDueNs(), INT64_MAX);
  queue_.Complete(record, 3'000);
  EXPECT_THAT(LeftOut(), testing::ElementsAre(10));
  const uint32_t next = Take(21, 3'030);
  Take(30, 3'100);
  Take(40, 3'200);
  queue_.Complete(next, 4'000);
  EXPECT_EQ(queue_.commits().recorded, 2u);
  EXPECT_EQ(queue_.commits().written, 2u);
}

// I/Os 50 and 51 think, and then wait for what a journal writes: a commit, it seems, until another
// one, of one write, comes before it. That counts for who is due later.
TEST_F(SharedCommitTest, WhatIsDueWhileACommitOfOneWriteRunsWaitsForNone) {
  Add(Step(0, 1, 0, 0));
  Add(Step(1, 2, 0, 1));
  Add(Step(45, 3, 0, 8));
  AddFirstCopy();
  Add(Commit(Step(20, 7, 20, 4, {1}), 0, Part::kWhole));
  Add(Step(50, 4, 40, 9, {8, kAfterThink | 3}));
  Add(Step(51, 5, 25, 10, {8, kAfterThink | 3}));
  const uint32_t first = Take(0, kStartNs);
  const uint32_t second = Take(1, kStartNs);
  const uint32_t other = Take(45, kStartNs);
  queue_.Complete(first, 2'000);  // asks, due at 2,050
  queue_.Complete(other, 2'000);
  EXPECT_EQ(queue_.NextDueNs(), 2'050) << "it is what they wait for";
  queue_.Complete(second, 2'010);
  const uint32_t record = Take(20, 2'030);
  Take(50, 2'040);
  EXPECT_EQ(queue_.NextDueNs(), INT64_MAX);
  queue_.Complete(record, 3'000);
  EXPECT_THAT(LeftOut(), testing::UnorderedElementsAre(10, 11));
  Take(51, 3'000);
}

// The second asks 40 ns after its gate: 10 ns after the first one's commit began.
TEST_F(SharedCommitTest, WhoAsksLaterThanItsGatesOpenMayComeTooLate) {
  PlannedIo later = Commit(Step(20, 7, 20, 4, {1}), 1, Part::kWhole);
  later.asks_after_ns = 40;
  Add(Step(0, 1, 0, 0));
  Add(Step(1, 2, 0, 1));
  Add(Commit(Step(10, 7, 30, 2, {0}), 0, Part::kWhole));
  Add(later);
  const uint32_t first = Take(0, kStartNs);
  queue_.Complete(Take(1, kStartNs), 2'000);
  queue_.Complete(first, 2'000);
  queue_.Complete(Take(10, 2'030), 3'000);
  EXPECT_THAT(LeftOut(), testing::IsEmpty());
  Take(20, 3'020);
}

TEST_F(SharedCommitTest, WhoAsksLaterThanItsGatesOpenBeginsLater) {
  PlannedIo later = Commit(Step(20, 7, 20, 4, {1}), 0, Part::kWhole);
  later.asks_after_ns = 40;
  Add(Step(1, 2, 0, 1));
  Add(later);
  queue_.Complete(Take(1, kStartNs), 2'000);
  Take(20, 2'060);
}

// I/O 50 waits for what copies 10 and 11 would write, until they join one that writes nothing
// before its record.
TEST_F(SharedCommitTest, WhoWaitsForWritesThatAreLeftOutGoesOn) {
  Add(Step(0, 1, 0, 0));
  Add(Step(1, 2, 0, 1));
  Add(Step(45, 3, 0, 8));
  AddFirstCopy();
  Add(Commit(Step(20, 7, 20, 4, {1}), 1, Part::kWhole));
  Add(Step(50, 4, 7, 9, {8, 3 | Dependencies::kWhileWriting}));
  const uint32_t first = Take(0, kStartNs);
  const uint32_t second = Take(1, kStartNs);
  const uint32_t other = Take(45, kStartNs);
  queue_.Complete(first, 2'000);
  queue_.Complete(other, 2'005);
  queue_.Complete(second, 2'010);
  queue_.Complete(Take(20, 2'030), 3'000);
  EXPECT_THAT(LeftOut(), testing::UnorderedElementsAre(10, 11));
  Take(50, 3'007);
}

TEST_F(SharedCommitTest, ACommitWithoutAnEndEndsWhenNothingElseCanHappen) {
  Add(Step(0, 1, 0, 0));
  Add(Step(1, 2, 0, 1));
  Add(Commit(Step(10, 7, 50, 2, {0}), 0, Part::kBegins));
  AddSecondCopy();
  const uint32_t first = Take(0, kStartNs);
  const uint32_t second = Take(1, kStartNs);
  queue_.Complete(first, 2'000);
  const uint32_t written = Take(10, 2'050);
  queue_.Complete(second, 2'060);
  queue_.Complete(written, 2'100);
  EXPECT_EQ(queue_.NextDueNs(), INT64_MAX);
  queue_.EndCommits(5'000);
  Take(20, 5'020);
}

// Nothing is lost: whatever the order of completions, all I/Os are taken or left out, once.
TEST_F(SharedCommitTest, ManyCommitsRunForever) {
  uint64_t sequence = 0, taken_count = 0, left_out = 0;
  int64_t now_ns = kStartNs;
  const auto run = [&](int64_t apart_ns) {
    while (queue_.NextDueNs() != INT64_MAX) {
      std::vector<uint32_t> out;
      while (queue_.NextDueNs() != INT64_MAX) {
        const GatedQueue::Taken taken = queue_.Take();
        now_ns = std::max(now_ns, taken.due_ns);
        ++taken_count;
        out.push_back(taken.gate);
      }
      std::rotate(out.begin(), out.begin() + static_cast<int64_t>(taken_count % out.size()),
                  out.end());
      for (const uint32_t gate : out) queue_.Complete(gate, now_ns += apart_ns);
    }
  };
  for (uint32_t round = 0; round < 20'000; ++round) {
    const uint32_t base = round % 2 * 10;
    const uint32_t askers = 1 + round % 3;
    for (uint32_t i = 0; i < askers; ++i) Add(Step(sequence++, i, i, base + i));
    for (const Part part : {Part::kBegins, Part::kEnds}) {
      for (uint32_t i = 0; i < askers; ++i) {
        const uint32_t gate = part == Part::kBegins ? base + i : base + 3 + i;
        const uint32_t own = part == Part::kBegins ? base + 3 + i : base + 6 + i;
        Add(Commit(Step(sequence++, 7, 1, own, {gate}), static_cast<uint8_t>(i), part));
      }
    }
    run(round % 3);
    left_out += LeftOut().size();
    ASSERT_EQ(queue_.size(), 0u);
  }
  EXPECT_EQ(taken_count + left_out, sequence);
  EXPECT_GT(left_out, 0u);
}

}  // namespace
}  // namespace blktape
