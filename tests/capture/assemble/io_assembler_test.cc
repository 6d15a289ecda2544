#include "capture/assemble/io_assembler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace blktape {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr uint32_t kApp = 100;     // pid of who queues
constexpr uint32_t kWorker = 7;    // pid of who issues
constexpr uint64_t kBlock = 4096;  // 8 sectors
constexpr int64_t kSecond = 1'000'000'000;

class IoAssemblerTest : public ::testing::Test, public IoAssembler::Output {
 protected:
  IoAssemblerTest() { Restart({}); }

  void Restart(const IoAssemblerOptions& options) {
    assembler_ = std::make_unique<IoAssembler>(this, options);
  }

  BlockEvent Event(BlockAction action, int64_t ns, uint64_t sector, uint64_t bytes, Op op,
                   uint32_t flags) {
    BlockEvent event;
    event.action = action;
    event.time_ns = ns;
    event.lba = Lba(sector);
    event.bytes = bytes;
    event.op = op;
    event.flags = flags;
    event.pid = kWorker;
    return event;
  }
  void Queue(int64_t ns, uint64_t sector, uint64_t bytes = kBlock, Op op = Op::kWrite,
             uint32_t flags = 0, uint32_t pid = kApp) {
    BlockEvent event = Event(BlockAction::kQueue, ns, sector, bytes, op, flags);
    event.pid = pid;
    assembler_->Add(0, event);
  }
  void Issue(int64_t ns, uint64_t sector, uint64_t bytes = kBlock, Op op = Op::kWrite,
             uint32_t flags = 0) {
    assembler_->Add(0, Event(BlockAction::kIssue, ns, sector, bytes, op, flags));
  }
  void Requeue(int64_t ns, uint64_t sector, uint64_t bytes = kBlock, Op op = Op::kWrite) {
    assembler_->Add(0, Event(BlockAction::kRequeue, ns, sector, bytes, op, 0));
  }
  void Complete(int64_t ns, uint64_t sector, uint64_t bytes = kBlock, Op op = Op::kWrite,
                uint32_t error = 0) {
    BlockEvent event = Event(BlockAction::kComplete, ns, sector, bytes, op, 0);
    event.error = error;
    assembler_->Add(0, event);
  }
  void AskFlush(int64_t ns, uint32_t pid = kApp) { Queue(ns, 0, 0, Op::kFlush, kFlagSync, pid); }
  void IssueFlush(int64_t ns) { Issue(ns, 0, 0, Op::kFlush); }
  void CompleteFlush(int64_t ns) { Complete(ns, 0, 0, Op::kFlush); }
  // How the kernel completes the original of a flush sequence: a write of nothing.
  void CompleteOriginal(int64_t ns, uint64_t sector = 0) { Complete(ns, sector, 0); }

  const std::vector<IoRecord>& Assembled() {
    assembler_->Finish();
    return records_;
  }
  uint64_t Lost(proto::LossReason reason) { return losses_[reason]; }

  void OnRecord(const FinishedIo& io) override { records_.push_back(io.record); }
  void OnOwnRecord(const FinishedIo& io) override { own_.push_back(io.record); }
  void OnQueued(const BlockEvent& /*event*/) override { ++queued_; }
  void OnAssemblerLoss(const proto::Loss& loss) override { losses_[loss.reason()] += loss.count(); }

  std::unique_ptr<IoAssembler> assembler_;
  std::vector<IoRecord> records_;
  std::vector<IoRecord> own_;
  std::map<proto::LossReason, uint64_t> losses_;
  int queued_ = 0;
};

TEST_F(IoAssemblerTest, QueueIssueAndCompletionAreOneRecord) {
  Queue(10, 800);
  Issue(15, 800, kBlock, Op::kWrite, kFlagSync);
  Complete(90, 800);
  ASSERT_THAT(Assembled(), SizeIs(1));
  const IoRecord& io = records_[0];
  EXPECT_EQ(io.op, Op::kWrite);
  EXPECT_EQ(io.flags, kFlagSync);
  EXPECT_THAT(io.lba, Optional(Lba(800)));
  EXPECT_EQ(io.bytes, 4096u);
  EXPECT_THAT(io.queue_ns, Optional(10));
  EXPECT_THAT(io.issue_ns, Optional(15));
  EXPECT_THAT(io.complete_ns, Optional(90));
  EXPECT_THAT(io.error, Optional(0u));
  EXPECT_THAT(io.pid, Optional(kApp));
  EXPECT_THAT(io.merged_bios, Optional(0u));
  EXPECT_THAT(losses_, IsEmpty());
}

TEST_F(IoAssemblerTest, WithoutQueueTheIssuerIsNamedAndQueueTimeIsAbsent) {
  Issue(15, 800);
  Complete(90, 800);
  ASSERT_THAT(Assembled(), SizeIs(1));
  EXPECT_EQ(records_[0].queue_ns, std::nullopt);
  EXPECT_EQ(records_[0].merged_bios, std::nullopt);
  EXPECT_THAT(records_[0].pid, Optional(kWorker));
}

TEST_F(IoAssemblerTest, MergedBiosBecomeOneRecordWithTheEarliestQueueTimeAndItsPid) {
  Queue(20, 808, kBlock, Op::kWrite, 0, 101);
  Queue(10, 800, kBlock, Op::kWrite, 0, 102);  // front merge, queued on another CPU
  Queue(30, 816, 2 * kBlock, Op::kWrite, 0, 103);
  Issue(50, 800, 4 * kBlock);
  Complete(90, 800, 4 * kBlock);
  ASSERT_THAT(Assembled(), SizeIs(1));
  EXPECT_THAT(records_[0].queue_ns, Optional(10));
  EXPECT_THAT(records_[0].pid, Optional(102u));
  EXPECT_THAT(records_[0].merged_bios, Optional(2u));
  EXPECT_THAT(losses_, IsEmpty());
}

TEST_F(IoAssemblerTest, PartsOfASplitBioAllHaveItsQueueTimeWhateverTheOrderOfIssue) {
  Queue(10, 0, 16 * kBlock);
  Issue(20, 64, 8 * kBlock);  // the second half first, with no split event
  Issue(21, 0, 8 * kBlock);
  Complete(30, 64, 8 * kBlock);
  Complete(31, 0, 8 * kBlock);
  ASSERT_THAT(Assembled(), SizeIs(2));
  EXPECT_THAT(records_[0].queue_ns, Optional(10));
  EXPECT_THAT(records_[1].queue_ns, Optional(10));
  EXPECT_THAT(losses_, IsEmpty());
}

TEST_F(IoAssemblerTest, SplitEventCutsTheBio) {
  Queue(10, 0, 2 * kBlock);
  BlockEvent split = Event(BlockAction::kSplit, 11, 0, 0, Op::kWrite, 0);
  split.split_lba = Lba(8);
  assembler_->Add(0, split);
  Queue(12, 16);
  Issue(20, 8, 2 * kBlock);  // the second part and the bio behind it
  Issue(21, 0);
  Complete(30, 8, 2 * kBlock);
  Complete(31, 0);
  ASSERT_THAT(Assembled(), SizeIs(2));
  EXPECT_THAT(losses_, IsEmpty());
  EXPECT_THAT(records_[0].queue_ns, Optional(10));
  EXPECT_THAT(records_[1].queue_ns, Optional(10));
  EXPECT_EQ(*records_[0].merged_bios + *records_[1].merged_bios, 1u);
}

TEST_F(IoAssemblerTest, RequeueAndSecondIssueAreOneRecordIssuedAtTheSecond) {
  Queue(10, 800);
  Issue(15, 800);
  Requeue(16, 800);
  Issue(40, 800);
  Complete(90, 800);
  ASSERT_THAT(Assembled(), SizeIs(1));
  EXPECT_THAT(records_[0].issue_ns, Optional(40));
  EXPECT_THAT(records_[0].queue_ns, Optional(10));
  EXPECT_THAT(losses_, IsEmpty());
}

TEST_F(IoAssemblerTest, SecondIssueWithoutRequeueEventIsTheSameRequest) {
  Queue(10, 800);
  Issue(15, 800);
  Issue(40, 800);
  Complete(90, 800);
  ASSERT_THAT(Assembled(), SizeIs(1));
  EXPECT_THAT(losses_, IsEmpty());
}

TEST_F(IoAssemblerTest, TwoBiosOfOnePlaceInFlightAtOnceAreTwoRecords) {
  Queue(10, 800, kBlock, Op::kRead);
  Queue(11, 800, kBlock, Op::kRead);
  Issue(15, 800, kBlock, Op::kRead);
  Issue(16, 800, kBlock, Op::kRead);
  Complete(90, 800, kBlock, Op::kRead);
  Complete(95, 800, kBlock, Op::kRead);
  ASSERT_THAT(Assembled(), SizeIs(2));
  EXPECT_THAT(records_[0].complete_ns, Optional(90));
  EXPECT_THAT(records_[1].complete_ns, Optional(95));
}

TEST_F(IoAssemblerTest, RepeatedIssueInATraceOfIssuesAndCompletionsDoesNotShiftTheNextOne) {
  Issue(10, 800);
  Issue(20, 800);  // requeued, which this trace does not tell
  Complete(30, 800);
  Issue(1000, 800);
  Complete(1030, 800);
  ASSERT_THAT(Assembled(), SizeIs(3));
  EXPECT_EQ(records_[0].complete_ns, std::nullopt);
  EXPECT_THAT(records_[1].complete_ns, Optional(30));
  EXPECT_THAT(records_[2].complete_ns, Optional(1030));
}

TEST_F(IoAssemblerTest, RequestCompletedInPartsEndsWithItsLastByte) {
  Issue(10, 0, 4 * kBlock);
  Complete(20, 0, kBlock);
  Complete(30, 8, 3 * kBlock, Op::kWrite, 5);
  ASSERT_THAT(Assembled(), SizeIs(1));
  EXPECT_EQ(records_[0].bytes, 4 * kBlock);
  EXPECT_THAT(records_[0].complete_ns, Optional(30));
  EXPECT_THAT(records_[0].error, Optional(5u));
  EXPECT_THAT(losses_, IsEmpty());
}

TEST_F(IoAssemblerTest, RestOfAPartlyDoneRequestMayBeIssuedAgain) {
  Issue(10, 0, 4 * kBlock);
  Complete(20, 0, kBlock);
  Requeue(21, 8, 3 * kBlock);
  Issue(25, 8, 3 * kBlock);
  Complete(30, 8, 3 * kBlock);
  ASSERT_THAT(Assembled(), SizeIs(1));
  EXPECT_THAT(records_[0].issue_ns, Optional(10));
  EXPECT_EQ(records_[0].bytes, 4 * kBlock);
  EXPECT_THAT(losses_, IsEmpty());
}

TEST_F(IoAssemblerTest, CompletionWithoutIssueIsCountedNotInvented) {
  assembler_->NoteLoss(std::nullopt);
  Queue(10, 8);
  Complete(90, 8);
  EXPECT_THAT(Assembled(), IsEmpty());
  EXPECT_EQ(Lost(proto::ORPHAN_COMPLETION), 1u);
}

TEST_F(IoAssemblerTest, CompletionsOfWhatWasInFlightAtTheStartAreNoLoss) {
  Complete(10, 8);
  Complete(31 * kSecond, 16);
  EXPECT_THAT(Assembled(), IsEmpty());
  EXPECT_EQ(Lost(proto::IN_FLIGHT_AT_START), 1u);
  EXPECT_EQ(Lost(proto::ORPHAN_COMPLETION), 1u);
}

TEST_F(IoAssemblerTest, IssueWithoutCompletionIsARecordWithoutCompletion) {
  Queue(10, 8);
  Issue(20, 8);
  Queue(100 * kSecond, 16);
  Issue(100 * kSecond + 5, 16);
  ASSERT_THAT(Assembled(), SizeIs(2));
  EXPECT_EQ(records_[0].complete_ns, std::nullopt);
  EXPECT_EQ(records_[0].error, std::nullopt);
  EXPECT_EQ(Lost(proto::ISSUE_WITHOUT_COMPLETION), 1u);
  EXPECT_EQ(Lost(proto::IN_FLIGHT_AT_END), 1u);
}

TEST_F(IoAssemblerTest, QueueWithoutIssueIsCounted) {
  Queue(10, 8);
  Queue(100 * kSecond, 16);
  EXPECT_THAT(Assembled(), IsEmpty());
  EXPECT_EQ(Lost(proto::QUEUE_WITHOUT_ISSUE), 1u);
  EXPECT_EQ(Lost(proto::IN_FLIGHT_AT_END), 1u);
}

TEST_F(IoAssemblerTest, BioThatFailedUnseenDoesNotGiveItsQueueTimeToALaterOne) {
  Queue(10, 8, kBlock, Op::kRead, kFlagReadahead);  // fails: it may not wait
  Queue(35 * kSecond, 8, kBlock, Op::kRead, 0, 101);
  Issue(35 * kSecond + 10, 8, kBlock, Op::kRead);
  Complete(35 * kSecond + 20, 8, kBlock, Op::kRead);
  ASSERT_THAT(Assembled(), SizeIs(1));
  EXPECT_THAT(records_[0].queue_ns, Optional(35 * kSecond));
  EXPECT_THAT(records_[0].pid, Optional(101u));
  EXPECT_THAT(losses_, IsEmpty());
}

TEST_F(IoAssemblerTest, BioThatFailsBeforeItIsARequestIsNoLoss) {
  Issue(5, 800);
  Queue(10, 8, kBlock, Op::kRead);
  Complete(12, 8, kBlock, Op::kRead, 11);  // EAGAIN: no wait allowed
  Complete(20, 800);
  EXPECT_THAT(Assembled(), SizeIs(1));
  EXPECT_THAT(losses_, IsEmpty());
}

TEST_F(IoAssemblerTest, FsyncAndTheDrivesFlushAreOneRecord) {
  AskFlush(10);
  IssueFlush(20);
  CompleteFlush(70);
  CompleteOriginal(72);
  ASSERT_THAT(Assembled(), SizeIs(1));
  const IoRecord& io = records_[0];
  EXPECT_EQ(io.op, Op::kFlush);
  EXPECT_EQ(io.flags, kFlagSync);
  EXPECT_EQ(io.lba, std::nullopt);
  EXPECT_THAT(io.queue_ns, Optional(10));
  EXPECT_THAT(io.issue_ns, Optional(20));
  EXPECT_THAT(io.complete_ns, Optional(70));
  EXPECT_THAT(io.pid, Optional(kApp));
  EXPECT_THAT(io.merged_bios, Optional(0u));
  EXPECT_THAT(losses_, IsEmpty());
}

TEST_F(IoAssemblerTest, OneFlushOfTheDriveServesAllWhoWait) {
  AskFlush(10, 101);
  AskFlush(12, 102);
  IssueFlush(20);
  AskFlush(30, 103);  // while the drive flushes: needs the next one
  CompleteFlush(70);
  CompleteOriginal(71);
  CompleteOriginal(72);
  IssueFlush(80);
  CompleteFlush(90);
  CompleteOriginal(91);
  ASSERT_THAT(Assembled(), SizeIs(2));
  EXPECT_THAT(records_[0].pid, Optional(101u));
  EXPECT_THAT(records_[0].merged_bios, Optional(1u));
  EXPECT_THAT(records_[1].pid, Optional(103u));
  EXPECT_THAT(records_[1].queue_ns, Optional(30));
  EXPECT_THAT(losses_, IsEmpty());
}

TEST_F(IoAssemblerTest, FlushesOfTwoHardwareQueuesShareWhoAsked) {
  AskFlush(10, 101);
  AskFlush(12, 102);
  IssueFlush(20);
  IssueFlush(21);
  CompleteFlush(70);
  CompleteFlush(71);
  ASSERT_THAT(Assembled(), SizeIs(2));
  EXPECT_THAT(records_[0].pid, Optional(101u));
  EXPECT_THAT(records_[1].pid, Optional(102u));
}

// A journal commit on a drive without FUA (DESIGN.md 4.3): flush, write, flush.
TEST_F(IoAssemblerTest, FlushesOfAFlaggedWriteAreDerivedAndTheWriteKeepsItsFlags) {
  Queue(10, 800, kBlock, Op::kWrite, kFlagPreflush | kFlagFua | kFlagSync);
  IssueFlush(20);
  CompleteFlush(30);
  Issue(32, 800, kBlock, Op::kWrite, kFlagSync);
  Complete(40, 800);
  IssueFlush(42);
  CompleteFlush(50);
  CompleteOriginal(52, 800);
  AskFlush(60);
  IssueFlush(62);
  CompleteFlush(70);
  CompleteOriginal(71);
  ASSERT_THAT(Assembled(), SizeIs(4));
  EXPECT_EQ(records_[0].op, Op::kWrite);
  EXPECT_EQ(records_[0].flags, kFlagPreflush | kFlagFua | kFlagSync);
  EXPECT_THAT(records_[0].complete_ns, Optional(40));
  EXPECT_EQ(records_[1].flags & kFlagDerived, kFlagDerived);
  EXPECT_EQ(records_[1].queue_ns, std::nullopt);
  EXPECT_EQ(records_[2].flags & kFlagDerived, kFlagDerived);
  EXPECT_EQ(records_[3].flags & kFlagDerived, 0u);
  EXPECT_THAT(losses_, IsEmpty());
}

TEST_F(IoAssemblerTest, FuaWriteOnADriveWithFuaHasNoDerivedFlush) {
  Queue(10, 800, kBlock, Op::kWrite, kFlagFua);
  Issue(12, 800, kBlock, Op::kWrite, kFlagFua);
  Complete(40, 800);
  IssueFlush(50);  // asked for before the recording began
  CompleteFlush(60);
  ASSERT_THAT(Assembled(), SizeIs(2));
  EXPECT_EQ(records_[1].flags & kFlagDerived, 0u);
}

TEST_F(IoAssemblerTest, TraceWithoutQueueHasPlainFlushes) {
  IssueFlush(20);
  CompleteFlush(30);
  Issue(32, 800);
  Complete(40, 800);
  CompleteOriginal(52, 800);
  ASSERT_THAT(Assembled(), SizeIs(2));
  EXPECT_EQ(records_[0].op, Op::kFlush);
  EXPECT_EQ(records_[0].flags, 0u);
  EXPECT_THAT(losses_, IsEmpty());
}

TEST_F(IoAssemblerTest, FlushAskedWhereNothingNeedsFlushingIsNoPartOfALaterFlush) {
  AskFlush(10, 101);
  CompleteOriginal(11);  // the drive has no volatile cache: completed at once
  AskFlush(1000, 102);
  IssueFlush(1010);
  CompleteFlush(1020);
  CompleteOriginal(1021);
  ASSERT_THAT(Assembled(), SizeIs(1));
  EXPECT_THAT(records_[0].queue_ns, Optional(1000));
}

TEST_F(IoAssemblerTest, RecordsLeaveInOrderOfArrivalNotOfCompletion) {
  Queue(10, 0);
  Queue(20, 100);
  Issue(21, 0);
  Issue(22, 100);
  Complete(30, 100);
  EXPECT_THAT(records_, IsEmpty());
  Complete(40, 0);
  ASSERT_THAT(records_, SizeIs(2));
  EXPECT_THAT(records_[0].queue_ns, Optional(10));
  EXPECT_THAT(records_[1].queue_ns, Optional(20));
}

TEST_F(IoAssemblerTest, SlowRequestHoldsOthersBackNoLongerThanTheBound) {
  IoAssemblerOptions options;
  options.hold_ns = kSecond;
  Restart(options);
  Queue(10, 0);
  Issue(11, 0);
  Queue(20, 100);
  Issue(21, 100);
  Complete(30, 100);
  assembler_->Advance(kSecond + 21);
  ASSERT_THAT(records_, SizeIs(1));
  EXPECT_THAT(records_[0].queue_ns, Optional(20));
  Complete(5 * kSecond, 0);
  ASSERT_THAT(records_, SizeIs(2));
  EXPECT_EQ(assembler_->late_records(), 1u);
  EXPECT_THAT(losses_, IsEmpty());
}

TEST_F(IoAssemblerTest, BioBasedDeviceHasQueueAndCompletionAndNoIssue) {
  assembler_->Introduce(0, {.bio_based = true});
  Queue(10, 800, kBlock, Op::kRead);
  Complete(30, 800, kBlock, Op::kRead);
  AskFlush(40);
  CompleteFlush(50);
  ASSERT_THAT(Assembled(), SizeIs(2));
  EXPECT_THAT(records_[0].queue_ns, Optional(10));
  EXPECT_EQ(records_[0].issue_ns, std::nullopt);
  EXPECT_THAT(records_[0].complete_ns, Optional(30));
  EXPECT_EQ(records_[1].op, Op::kFlush);
  EXPECT_THAT(losses_, IsEmpty());
}

TEST_F(IoAssemblerTest, WhatABioBasedDeviceHasNotCompletedLeavesWithoutCompletion) {
  assembler_->Introduce(0, {.bio_based = true});
  Queue(10, 800, kBlock, Op::kRead);
  AskFlush(20);
  ASSERT_THAT(Assembled(), SizeIs(2));
  EXPECT_THAT(records_[0].lba, Optional(Lba(800)));
  EXPECT_EQ(records_[0].bytes, kBlock);
  EXPECT_THAT(records_[0].queue_ns, Optional(10));
  EXPECT_THAT(records_[0].pid, Optional(kApp));
  EXPECT_EQ(records_[0].complete_ns, std::nullopt);
  EXPECT_EQ(records_[0].error, std::nullopt);
  EXPECT_EQ(records_[1].op, Op::kFlush);
  EXPECT_THAT(records_[1].queue_ns, Optional(20));
  EXPECT_EQ(records_[1].complete_ns, std::nullopt);
  EXPECT_THAT(losses_, ElementsAre(Pair(proto::IN_FLIGHT_AT_END, 2)));
}

TEST_F(IoAssemblerTest, ABioThatABioBasedDeviceNeverCompletesIsAnIssueWithoutCompletion) {
  assembler_->Introduce(0, {.bio_based = true});
  Queue(10, 800);
  assembler_->Advance(700 * kSecond);
  ASSERT_THAT(records_, SizeIs(1));
  EXPECT_EQ(records_[0].complete_ns, std::nullopt);
  ASSERT_THAT(Assembled(), SizeIs(1));
  EXPECT_THAT(losses_, ElementsAre(Pair(proto::ISSUE_WITHOUT_COMPLETION, 1)));
}

TEST_F(IoAssemblerTest, DiscardOfSeveralRangesIsARecordForEach) {
  Queue(10, 0, kBlock, Op::kDiscard);
  Queue(11, 1000, 2 * kBlock, Op::kDiscard);
  // The request tells its first range's address and the sum of all.
  Issue(20, 0, 3 * kBlock, Op::kDiscard);
  Complete(30, 0, 3 * kBlock, Op::kDiscard);
  ASSERT_THAT(Assembled(), SizeIs(2));
  EXPECT_THAT(records_[0].lba, Optional(Lba(0)));
  EXPECT_EQ(records_[0].bytes, kBlock);
  EXPECT_THAT(records_[1].lba, Optional(Lba(1000)));
  EXPECT_EQ(records_[1].bytes, 2 * kBlock);
  EXPECT_THAT(records_[1].complete_ns, Optional(30));
  EXPECT_THAT(losses_, IsEmpty());
}

// Of a request of several ranges the events tell the first one's address and the sum.
class DiscardTest : public IoAssemblerTest {
 protected:
  DiscardTest() { assembler_->Introduce(0, {.discard_ranges = 256}); }

  void Ask(int64_t ns, uint64_t sector, uint64_t blocks, uint32_t pid = kApp) {
    Queue(ns, sector, blocks * kBlock, Op::kDiscard, 0, pid);
  }
  void Do(int64_t ns, uint64_t sector, uint64_t blocks) {
    Issue(ns, sector, blocks * kBlock, Op::kDiscard);
    Complete(ns + 5, sector, blocks * kBlock, Op::kDiscard);
  }
  std::vector<std::pair<uint64_t, uint64_t>> Ranges() {  // sector, blocks
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (const IoRecord& io : Assembled()) ranges.emplace_back(io.lba->sectors, io.bytes / kBlock);
    std::sort(ranges.begin(), ranges.end());
    return ranges;
  }
};

TEST_F(DiscardTest, OfSeveralRangesAmongOthersThatWait) {
  Ask(10, 0, 1);
  Ask(11, 16, 1, kApp + 1);  // of another task, of the size that is looked for, and queued before
  Ask(12, 1000, 1);
  Ask(13, 2000, 1, kApp + 1);
  Do(20, 0, 2);
  Do(21, 16, 2);
  EXPECT_THAT(Ranges(), ElementsAre(Pair(0, 1), Pair(16, 1), Pair(1000, 1), Pair(2000, 1)));
  EXPECT_THAT(losses_, IsEmpty());
}

TEST_F(DiscardTest, GathersWhatLiesApartAlsoWhereAnotherOneTouchesTheFirst) {
  Ask(10, 0, 1);
  Ask(11, 8, 1, kApp + 1);
  Ask(12, 1000, 1);
  Do(20, 0, 2);
  Do(21, 8, 1);
  EXPECT_THAT(Ranges(), ElementsAre(Pair(0, 1), Pair(8, 1), Pair(1000, 1)));
}

TEST_F(DiscardTest, OfSeveralTasks) {
  Ask(10, 0, 1, 101);
  Ask(11, 1000, 2, 102);
  Ask(12, 500, 3, 103);
  Do(20, 0, 6);
  EXPECT_THAT(Ranges(), ElementsAre(Pair(0, 1), Pair(500, 3), Pair(1000, 2)));
}

TEST_F(DiscardTest, RangesThatTouchAreOne) {
  Ask(10, 0, 1);
  Ask(11, 8, 1);
  Ask(12, 1000, 1);
  Do(20, 0, 3);
  EXPECT_THAT(Ranges(), ElementsAre(Pair(0, 2), Pair(1000, 1)));
}

TEST_F(DiscardTest, WhatIsNotKnownIsCountedAndNeverInvented) {
  Ask(10, 0, 1);  // the others were lost
  Do(20, 0, 3);
  Do(30, 5000, 2);  // and of this one all
  EXPECT_THAT(Ranges(), ElementsAre(Pair(0, 1)));
  EXPECT_THAT(losses_, ElementsAre(Pair(proto::UNDECODABLE_EVENT, 2)));
}

TEST_F(DiscardTest, GivenBackAndIssuedAgainKeepsItsRanges) {
  Ask(10, 0, 1);
  Ask(11, 1000, 2);
  Issue(20, 0, 3 * kBlock, Op::kDiscard);
  Requeue(21, 0, 3 * kBlock, Op::kDiscard);
  Do(30, 0, 3);
  EXPECT_THAT(Ranges(), ElementsAre(Pair(0, 1), Pair(1000, 2)));
  EXPECT_THAT(losses_, IsEmpty());
}

TEST_F(DiscardTest, OfADiskThatTakesOneRangeIsOneRange) {
  assembler_->Introduce(0, {.discard_ranges = 1});
  Ask(10, 0, 1);
  Ask(11, 1000, 1);
  Do(20, 0, 2);  // the bio of its second half was lost
  Do(21, 1000, 1);
  EXPECT_THAT(Ranges(), ElementsAre(Pair(0, 2), Pair(1000, 1)));
}

// Zones of 1,024 sectors.
class ZoneTest : public IoAssemblerTest {
 protected:
  ZoneTest() { assembler_->Introduce(0, {.zone_sectors = 1024}); }
};

TEST_F(ZoneTest, AnAppendCompletesWhereTheDrivePutIt) {
  Queue(10, 2048, kBlock, Op::kZoneAppend);
  Queue(11, 2048, 2 * kBlock, Op::kZoneAppend);
  Issue(12, 2048, kBlock, Op::kZoneAppend);
  Issue(13, 2048, 2 * kBlock, Op::kZoneAppend);
  Complete(20, 2056, 2 * kBlock, Op::kZoneAppend);
  Complete(21, 2072, kBlock, Op::kZoneAppend);
  ASSERT_THAT(Assembled(), SizeIs(2));
  for (const IoRecord& io : records_) {
    EXPECT_THAT(io.lba, Optional(Lba(2048)));
    EXPECT_THAT(io.complete_ns, Optional(io.bytes == kBlock ? 21 : 20));
  }
  EXPECT_THAT(losses_, IsEmpty());
}

TEST_F(ZoneTest, AWriteThatCompletesElsewhereInItsZoneIsAnAppend) {
  Queue(10, 2048);  // so blktrace calls it
  Issue(12, 2048);
  Complete(20, 2560);
  Queue(30, 3000);
  Issue(31, 3000);
  Complete(32, 3000);
  ASSERT_THAT(Assembled(), SizeIs(2));
  EXPECT_EQ(records_[0].op, Op::kZoneAppend);
  EXPECT_EQ(records_[1].op, Op::kWrite);
  EXPECT_THAT(losses_, IsEmpty());
}

TEST_F(ZoneTest, WhatHasNoNameIsAnAppendWhereAZoneBegins) {
  const auto add = [&](BlockAction action, int64_t ns, uint64_t sector) {
    BlockEvent event = Event(action, ns, sector, kBlock, Op::kWriteZeroes, 0);
    event.unnamed_op = true;
    assembler_->Add(0, event);
  };
  add(BlockAction::kQueue, 10, 1024);
  add(BlockAction::kIssue, 11, 1024);
  add(BlockAction::kComplete, 12, 1032);
  add(BlockAction::kQueue, 20, 1536);
  add(BlockAction::kIssue, 21, 1536);
  add(BlockAction::kComplete, 22, 1536);
  ASSERT_THAT(Assembled(), SizeIs(2));
  EXPECT_EQ(records_[0].op, Op::kZoneAppend);
  EXPECT_EQ(records_[1].op, Op::kWriteZeroes);
  EXPECT_THAT(losses_, IsEmpty());
}

TEST_F(IoAssemblerTest, OwnIoIsLeftOutAndWhatOthersMergedIntoItIsNot) {
  IoAssemblerOptions options;
  options.own_pids = {55};
  Restart(options);
  Queue(10, 0, kBlock, Op::kWrite, 0, 55);
  Issue(11, 0);
  Complete(12, 0);
  Queue(20, 8, kBlock, Op::kWrite, 0, 55);
  Queue(21, 16);
  Issue(22, 8, 2 * kBlock);
  Complete(23, 8, 2 * kBlock);
  ASSERT_THAT(Assembled(), SizeIs(1));
  EXPECT_THAT(records_[0].pid, Optional(kApp));
  EXPECT_THAT(own_, SizeIs(1));
  EXPECT_EQ(queued_, 1);
}

TEST_F(IoAssemblerTest, AnIdThatWasOwnOnceIsSomebodyElsesLater) {
  IoAssemblerOptions options;
  options.own_pids = {55};
  Restart(options);
  assembler_->SetOwnPids({56});
  Queue(10, 0, kBlock, Op::kWrite, 0, 55);
  Issue(11, 0);
  Complete(12, 0);
  Queue(20, 8, kBlock, Op::kWrite, 0, 56);
  Issue(21, 8);
  Complete(22, 8);
  ASSERT_THAT(Assembled(), SizeIs(1));
  EXPECT_THAT(records_[0].pid, Optional(55u));
  EXPECT_THAT(own_, SizeIs(1));
}

TEST_F(IoAssemblerTest, StaleRequestOfBeforeALossDoesNotTakeALaterCompletion) {
  Queue(10, 800);
  Issue(15, 800);
  assembler_->NoteLoss(20);  // its completion was lost
  Queue(5000, 800);
  Issue(5010, 800);
  Complete(5020, 800);
  ASSERT_THAT(Assembled(), SizeIs(2));
  EXPECT_EQ(records_[0].complete_ns, std::nullopt);
  EXPECT_THAT(records_[1].issue_ns, Optional(5010));
  EXPECT_THAT(records_[1].complete_ns, Optional(5020));
  EXPECT_EQ(Lost(proto::ISSUE_WITHOUT_COMPLETION), 1u);
}

TEST_F(IoAssemblerTest, PassthroughIsCountedAndLeftOut) {
  BlockEvent event = Event(BlockAction::kIssue, 10, 0, 512, Op::kRead, 0);
  event.passthrough = true;
  assembler_->Add(0, event);
  event.action = BlockAction::kComplete;
  assembler_->Add(0, event);
  EXPECT_THAT(Assembled(), IsEmpty());
  EXPECT_EQ(assembler_->passthrough(), 2u);
  EXPECT_THAT(losses_, IsEmpty());
}

// 20,000 I/Os of random size, merged, split and completed in any order: as many requests come out,
// none lost, in order, with the bytes that went in.
TEST_F(IoAssemblerTest, WhatGoesInComesOut) {
  std::mt19937 random(7);
  int64_t now = 0;
  uint64_t bytes_issued = 0;
  size_t requests = 0;
  std::vector<std::pair<uint64_t, uint64_t>> in_flight;
  uint64_t sector = 0;
  for (int round = 0; round < 5000; ++round) {
    // A run of adjacent bios, issued as requests cut anywhere.
    const uint64_t begin = sector;
    const auto bios = static_cast<int>(1 + random() % 8);
    for (int i = 0; i < bios; ++i) {
      const uint64_t bytes = (1 + random() % 16) * kBlock;
      Queue(++now, sector, bytes);
      sector += bytes / 512;
    }
    uint64_t at = begin;
    while (at < sector) {
      const uint64_t sectors = std::min<uint64_t>(sector - at, 8 * (1 + random() % 40));
      Issue(++now, at, sectors * 512);
      in_flight.emplace_back(at, sectors * 512);
      bytes_issued += sectors * 512;
      ++requests;
      at += sectors;
    }
    sector += 1000;
    while (in_flight.size() > 64) {
      const size_t pick = random() % in_flight.size();
      Complete(++now, in_flight[pick].first, in_flight[pick].second);
      in_flight.erase(in_flight.begin() + static_cast<ptrdiff_t>(pick));
    }
  }
  for (const auto& [at, bytes] : in_flight) Complete(++now, at, bytes);
  ASSERT_EQ(Assembled().size(), requests);
  uint64_t bytes = 0;
  int64_t arrival = 0;
  for (const IoRecord& io : records_) {
    bytes += io.bytes;
    EXPECT_LE(arrival, *io.arrival_ns());
    arrival = *io.arrival_ns();
    EXPECT_LT(*io.queue_ns, *io.issue_ns);
    EXPECT_LT(*io.issue_ns, *io.complete_ns);
  }
  EXPECT_EQ(bytes, bytes_issued);
  EXPECT_THAT(losses_, IsEmpty());
}

}  // namespace
}  // namespace blktape
