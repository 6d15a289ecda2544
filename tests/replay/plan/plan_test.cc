#include "replay/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "replay/plan/kept_blocks.h"
#include "tests/replay/plan/fake_records.h"

namespace blktape {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr uint64_t kTargetBytes = 1 << 30;

PlanOptions OneTarget(TimingRule rule = TimingRule::kTimed) {
  PlanOptions options;
  options.rule = rule;
  options.target_of_device = {0};
  options.address_map_of_device = {AddressMap({}, 0, kTargetBytes, kTargetBytes, 512)};
  options.targets = {PlanTarget{.size_bytes = kTargetBytes, .abilities = {}}};
  return options;
}

struct Planned {
  std::vector<PlannedIo> steps;
  PlanCounts counts;
  Status status;
  int64_t idle_cut_ns = 0;
};

Planned All(std::vector<IoRecord> records, const PlanOptions& options) {
  FakeRecords stream(std::move(records), static_cast<int>(options.target_of_device.size()));
  Plan plan(&stream, options);
  Planned planned;
  PlannedIo io;
  while (true) {
    const Result<bool> more = plan.Next(&io);
    planned.status = more.status();
    if (!more.ok() || !*more) break;
    planned.steps.push_back(io);
  }
  planned.counts = plan.counts();
  planned.idle_cut_ns = plan.idle_cut_ns();
  return planned;
}

TEST(PlanTest, ATimedPlanKeepsOpAddressSizeAndDistance) {
  const Planned planned = All({Write(500, {}, 8192, 12288), Read(700, {}, 4096)}, OneTarget());
  ASSERT_EQ(planned.steps.size(), 2u);
  EXPECT_EQ(planned.steps[0].op, Op::kWrite);
  EXPECT_EQ(planned.steps[0].offset_bytes, 8192u);
  EXPECT_EQ(planned.steps[0].bytes, 12288u);
  EXPECT_EQ(planned.steps[0].offset_ns, 0);
  EXPECT_EQ(planned.steps[1].offset_ns, 200);
  EXPECT_EQ(planned.steps[1].sequence, 1u);
  EXPECT_EQ(planned.counts.planned, 2u);
  EXPECT_EQ(planned.counts.planned_bytes, 16384u);
}

TEST(PlanTest, SkippedIosKeepTheirTimeAndAreCountedByReason) {
  PlanOptions options = OneTarget();
  options.skip_writes = true;
  const Planned planned = All(
      {Write(0, {}), Read(100, {}), Io(Op::kDiscard, 150, {}, 0, 4096), Read(200, {})}, options);
  ASSERT_EQ(planned.steps.size(), 2u);
  EXPECT_EQ(planned.steps[0].offset_ns, 100);
  EXPECT_EQ(planned.steps[0].ordinal, 1u);
  EXPECT_EQ(planned.steps[0].sequence, 0u);
  EXPECT_EQ(planned.steps[1].offset_ns, 200);
  EXPECT_THAT(planned.counts.skipped, ElementsAre(Pair("skip-writes", 2)));
}

TEST(PlanTest, DiscardsLeaveOutWhatIsToBeKept) {
  const auto kept = std::make_shared<KeptBlocks>();
  const std::vector<IoRecord> records = {Read(0, {}, 8192, 4096),
                                         Io(Op::kDiscard, 100, {}, 0, 16384),
                                         Io(Op::kDiscard, 200, {}, 8192, 4096), Read(300, {})};
  kept->Follow(records[0]);
  for (const IoRecord& io : records) kept->Add(io, /*replayed=*/true);
  kept->Finish();
  PlanOptions options = OneTarget();
  options.targets[0].abilities.discard = true;
  options.kept = kept;
  const Planned planned = All(records, options);
  ASSERT_EQ(planned.steps.size(), 3u);
  EXPECT_EQ(planned.steps[1].offset_bytes, 0u);
  EXPECT_EQ(planned.steps[1].bytes, 8192u);
  EXPECT_EQ(planned.steps[2].ordinal, 3u);
  EXPECT_EQ(planned.steps[2].offset_ns, 300);
  EXPECT_THAT(planned.counts.skipped, ElementsAre(Pair("discard of what is read again", 1)));
}

TEST(PlanTest, AFlushTheBlockLayerDerivedIsLeftToTheKernel) {
  IoRecord derived = Io(Op::kFlush, 5, {}, 0, 0);
  derived.flags = kFlagDerived;
  const Planned planned = All({Io(Op::kFlush, 0, {}, 0, 0), derived}, OneTarget());
  ASSERT_EQ(planned.steps.size(), 1u);
  EXPECT_EQ(planned.steps[0].op, Op::kFlush);
  EXPECT_THAT(planned.counts.skipped, ElementsAre(Pair("derived flush, left to the kernel", 1)));
}

TEST(PlanTest, WhatTheTargetCannotDoFailsWithTheWayOut) {
  const Planned planned = All({Io(Op::kDiscard, 0, {}, 0, 4096)}, OneTarget());
  EXPECT_EQ(planned.status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(planned.status.message(), HasSubstr("--unsupported"));
}

TEST(PlanTest, UnsupportedSkipCountsByOperation) {
  PlanOptions options = OneTarget();
  options.unsupported = Unsupported::kSkip;
  const Planned planned = All(
      {Io(Op::kDiscard, 0, {}, 0, 4096), Io(Op::kZoneReset, 1, {}, 0, 4096), Read(2, {})}, options);
  EXPECT_EQ(planned.steps.size(), 1u);
  EXPECT_THAT(planned.counts.skipped, UnorderedElementsAre(Pair("unsupported discard", 1),
                                                           Pair("unsupported zone_reset", 1)));
}

TEST(PlanTest, UnsupportedEmulateTakesTheNearestOperationAndMarksIt) {
  PlanOptions options = OneTarget();
  options.unsupported = Unsupported::kEmulate;
  const Planned as_write = All({Io(Op::kDiscard, 0, {}, 0, 4096)}, options);
  ASSERT_EQ(as_write.steps.size(), 1u);
  EXPECT_EQ(as_write.steps[0].op, Op::kWrite);
  EXPECT_TRUE(as_write.steps[0].zero_payload);
  EXPECT_EQ(as_write.steps[0].flags & kFlagEmulated, kFlagEmulated);
  EXPECT_THAT(as_write.counts.emulated, ElementsAre(Pair("discard as write", 1)));

  options.targets[0].abilities.write_zeroes = true;
  const Planned as_zeroes = All({Io(Op::kDiscard, 0, {}, 0, 4096)}, options);
  ASSERT_EQ(as_zeroes.steps.size(), 1u);
  EXPECT_EQ(as_zeroes.steps[0].op, Op::kWriteZeroes);
}

TEST(PlanTest, ASecureEraseIsDoneOnlyWhenNamed) {
  PlanOptions options = OneTarget();
  options.targets[0].abilities.secure_erase = true;
  const std::vector<IoRecord> records = {Io(Op::kSecureErase, 0, {}, 0, 4096)};
  EXPECT_THAT(All(records, options).status.message(), HasSubstr("--secure-erase"));
  options.secure_erase = true;
  EXPECT_EQ(All(records, options).steps.size(), 1u);
}

TEST(PlanTest, DevicesGoToTheirTargetsAndUnmappedOnesAreLeftOut) {
  PlanOptions options = OneTarget();
  options.target_of_device = {1, std::nullopt, 0};
  options.address_map_of_device.assign(3, options.address_map_of_device[0]);
  options.targets.push_back(options.targets[0]);
  IoRecord b = Read(1, {});
  b.device = 1;
  IoRecord c = Read(2, {});
  c.device = 2;
  const Planned planned = All({Read(0, {}), b, c}, options);
  ASSERT_EQ(planned.steps.size(), 2u);
  EXPECT_EQ(planned.steps[0].target, 1u);
  EXPECT_EQ(planned.steps[1].target, 0u);
  EXPECT_THAT(planned.counts.skipped, ElementsAre(Pair("device not mapped", 1)));
}

TEST(PlanTest, MaxOrderNamesThoseThatHadCompletedBeforeTheArrival) {
  const Planned planned = All(
      {
          Read(0, /*complete_ns=*/100),  // A
          Read(10, 40),                  // B: nothing complete yet
          Read(50, 90),                  // C: after B
          Read(95, 200),                 // D: after B and C
          Read(300, 310),                // E: after all
      },
      OneTarget(TimingRule::kMaxOrder));
  ASSERT_EQ(planned.steps.size(), 5u);
  const auto required = [&planned](size_t i) {
    const PlannedIo& io = planned.steps[i];
    return std::vector<uint32_t>(io.required.begin(), io.required.begin() + io.required_count);
  };
  const auto slot = [&planned](size_t i) { return planned.steps[i].gate_slot; };
  EXPECT_THAT(required(0), IsEmpty());
  EXPECT_THAT(required(1), IsEmpty());
  EXPECT_THAT(required(2), ElementsAre(slot(1)));
  EXPECT_THAT(required(3), ElementsAre(slot(2)));
  EXPECT_THAT(required(4), UnorderedElementsAre(slot(0), slot(3)));
  for (const PlannedIo& io : planned.steps) EXPECT_EQ(io.offset_ns, 0) << "think time is dropped";
}

TEST(PlanTest, ASkippedIoPassesItsGatesOnToTheNextOne) {
  PlanOptions options = OneTarget(TimingRule::kMaxOrder);
  options.skip_writes = true;
  const Planned planned = All({Read(0, 10), Write(20, 30), Read(40, 50)}, options);
  ASSERT_EQ(planned.steps.size(), 2u);
  ASSERT_EQ(planned.steps[1].required_count, 1);
  EXPECT_EQ(planned.steps[1].required[0], planned.steps[0].gate_slot);
}

TEST(PlanTest, MoreGatesThanAStepHoldsComeInStepsOfTheirOwn) {
  std::vector<IoRecord> records;
  for (int i = 0; i < 20; ++i) records.push_back(Read(i, 100 + i));
  records.push_back(Read(1000, 1001));
  const Planned planned = All(records, OneTarget(TimingRule::kMaxOrder));
  ASSERT_EQ(planned.steps.size(), 20u + 3 + 1);  // 20 gates: 6 + 6 + 6, and 2 with the I/O itself
  std::vector<uint32_t> named;
  for (size_t i = 20; i < planned.steps.size(); ++i) {
    EXPECT_EQ(planned.steps[i].kind, i < 23 ? PlannedIo::Kind::kGates : PlannedIo::Kind::kIo);
    for (int g = 0; g < planned.steps[i].required_count; ++g) {
      named.push_back(planned.steps[i].required[g]);
    }
  }
  std::sort(named.begin(), named.end());
  EXPECT_EQ(named.size(), 20u);
  EXPECT_EQ(std::unique(named.begin(), named.end()), named.end());
}

TEST(PlanTest, ThinkTimeRunsFromTheLatestCompletionBeforeTheArrival) {
  PlanOptions options = OneTarget(TimingRule::kMaxOrder);
  options.keep_think_time = true;
  const Planned planned = All({Read(100, 150), Read(130, 400), Read(180, 200)}, options);
  ASSERT_EQ(planned.steps.size(), 3u);
  EXPECT_EQ(planned.steps[0].offset_ns, 0);
  EXPECT_EQ(planned.steps[1].offset_ns, 30) << "nothing had completed: from the beginning";
  EXPECT_EQ(planned.steps[2].offset_ns, 30) << "150 to 180";
}

TEST(PlanTest, TheIdleCapCutsThinkTime) {
  PlanOptions options = OneTarget(TimingRule::kMaxOrder);
  options.keep_think_time = true;
  options.idle_cap_ns = 25;
  const Planned planned = All({Read(0, 10), Read(1000, 1010)}, options);
  EXPECT_EQ(planned.steps[1].offset_ns, 25);
}

TEST(PlanTest, AtAQueueDepthOnlyAnIdleDriveKeepsThinkTime) {
  PlanOptions options = OneTarget(TimingRule::kQueueDepth);
  options.keep_think_time = true;
  const Planned planned = All({Read(0, 100), Read(50, 60), Read(80, 90), Read(130, 140)}, options);
  ASSERT_EQ(planned.steps.size(), 4u);
  EXPECT_FALSE(planned.steps[2].wait_idle) << "the first was still in flight";
  EXPECT_EQ(planned.steps[2].offset_ns, 0);
  EXPECT_TRUE(planned.steps[3].wait_idle);
  EXPECT_EQ(planned.steps[3].offset_ns, 30);
  EXPECT_EQ(planned.steps[3].required_count, 0);
}

TEST(PlanTest, AnIoWithoutACompletionGatesNothingAndIsCounted) {
  const Planned planned = All({Read(0, {}), Read(100, 110)}, OneTarget(TimingRule::kMaxOrder));
  EXPECT_EQ(planned.steps[0].gate_slot, kNoGateSlot);
  EXPECT_EQ(planned.counts.ungated, 1u);
}

// All are in flight at once in the recording: more than there are gates.
TEST(PlanTest, AnIoBeyondTheGatesIsCountedAsUngated) {
  std::vector<IoRecord> records;
  for (uint32_t i = 0; i < kMaxGateSlots + 2; ++i) records.push_back(Read(i, 10'000'000));
  EXPECT_EQ(All(records, OneTarget(TimingRule::kMaxOrder)).counts.ungated, 2u);
}

TEST(PlanTest, AnIoThatEndsNoThinkTimeIsCountedAtAQueueDepthToo) {
  std::vector<IoRecord> records;
  for (uint32_t i = 0; i < kMaxGateSlots + 2; ++i) records.push_back(Read(i, 10'000'000));
  records.push_back(Read(20'000'000, {}));  // one whose completion is not known ends none anyway
  PlanOptions options = OneTarget(TimingRule::kQueueDepth);
  EXPECT_EQ(All(records, options).counts.ungated, 0u);
  options.keep_think_time = true;
  EXPECT_EQ(All(records, options).counts.ungated, 2u);
}

TEST(PlanTest, AClosedReplayTellsByHowMuchTheIssuerSeesEachIoLate) {
  PlanOptions options = OneTarget(TimingRule::kClosed);
  options.host_parts = {{.transfer = {5, 70}, .flush = {30, 90}}};
  const Planned planned = All({Io(Op::kFlush, 0, 1'000, 0, 0), Read(1'100, 1'200),
                               Io(Op::kFlush, 1'240, 2'000, 0, 0), Read(2'020, 2'100)},
                              options);
  ASSERT_EQ(planned.steps.size(), 4u);
  EXPECT_EQ(planned.steps[1].offset_ns, 100);
  EXPECT_EQ(planned.steps[1].host_ns, 5);
  EXPECT_EQ(planned.steps[2].offset_ns, 40);
  EXPECT_EQ(planned.steps[2].host_ns, 30);
}

TEST(PlanTest, ARequestThatNoDriveTakesEndsThePlanAndIsNamed) {
  FakeRecords records({Read(0, 10), Read(20, 30, 0, uint64_t{100} << 30)});
  Plan plan(&records, OneTarget());
  PlannedIo io;
  ASSERT_TRUE(plan.Next(&io).ok());
  const Status status = plan.Next(&io).status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), testing::HasSubstr("record 1 of the trace is a read of 100 GiB"));
}

TEST(PlanTest, WhatNothingIsKnownOfIsLeftOutByName) {
  IoRecord timeless = Read(0, {});
  timeless.queue_ns.reset();
  timeless.issue_ns.reset();
  IoRecord placeless = Read(0, {});
  placeless.lba.reset();
  const Planned planned = All({timeless, placeless, Read(0, {}, 0, 0)}, OneTarget());
  EXPECT_THAT(planned.steps, IsEmpty());
  EXPECT_THAT(planned.counts.skipped,
              UnorderedElementsAre(Pair("no time recorded", 1), Pair("no address recorded", 1),
                                   Pair("no data", 1)));
}

constexpr uint32_t kJournal = kFlagSync | kFlagMeta;
constexpr uint32_t kRecord = kJournal | kFlagPreflush | kFlagFua;

IoRecord By(uint32_t thread, Op op, int64_t from_us, int64_t to_us, uint32_t flags = 0) {
  IoRecord record = Io(op, from_us * 1'000, to_us * 1'000, 0, op == Op::kFlush ? 0 : 4096);
  record.pid = thread;
  record.flags = flags;
  return record;
}

// In the plan's order.
std::vector<uint64_t> Ordinals(const Planned& planned) {
  std::vector<uint64_t> ordinals;
  for (size_t i = 0; i < planned.steps.size(); ++i) {
    EXPECT_EQ(planned.steps[i].sequence, i);
    ordinals.push_back(planned.steps[i].ordinal);
  }
  return ordinals;
}

// Two threads ask for the second commit of thread 7.
TEST(PlanTest, ACommitThatMayBeSharedIsPlannedForEachThreadThatAskedForIt) {
  const Planned planned =
      All({By(7, Op::kWrite, 0, 40, kJournal), By(7, Op::kWrite, 50, 100, kRecord),
           By(1, Op::kWrite, 300, 400, kFlagSync), By(2, Op::kWrite, 310, 450, kFlagSync),
           By(7, Op::kWrite, 480, 600, kJournal), By(7, Op::kWrite, 610, 900, kRecord),
           By(2, Op::kWrite, 1'000, 1'100, kFlagSync)},
          OneTarget(TimingRule::kClosed));
  ASSERT_THAT(Ordinals(planned), ElementsAre(0, 1, 2, 3, 4, 4, 5, 5, 6));
  EXPECT_EQ(planned.steps[4].commit_copy, 0);
  EXPECT_EQ(planned.steps[5].commit_copy, 1);
  EXPECT_EQ(planned.steps[7].commit_part, Dependencies::CommitPart::kEnds);
  EXPECT_TRUE(planned.steps[7].asked);
  EXPECT_NE(planned.steps[6].gate_slot, planned.steps[7].gate_slot);
  const PlannedIo& next = planned.steps[8];
  EXPECT_THAT(
      std::vector(next.required.begin(), next.required.begin() + next.required_count),
      testing::UnorderedElementsAre(planned.steps[3].gate_slot, planned.steps[7].gate_slot));
  EXPECT_EQ(planned.counts.planned, 7u) << "the trace's I/Os";
  EXPECT_EQ(planned.counts.copies, 2u);
}

// Thread 1 writes the log, also for thread 2, which flushes then.
TEST(PlanTest, WhoWroteALogFlushesLikeTheOthersIfItsCopyIsLeftOut) {
  const Planned planned = All(
      {By(1, Op::kRead, 0, 50), By(2, Op::kRead, 10, 60), By(1, Op::kWrite, 100, 200, kFlagSync),
       By(2, Op::kWrite, 110, 190, kFlagSync), By(1, Op::kWrite, 220, 600, kRecord),
       By(2, Op::kFlush, 650, 900), By(1, Op::kRead, 700, 750)},
      OneTarget(TimingRule::kClosed));
  ASSERT_THAT(Ordinals(planned), ElementsAre(0, 1, 2, 3, 4, 4, 5, 5, 6));
  const PlannedIo& recorded = planned.steps[6];
  const PlannedIo& own = planned.steps[7];
  EXPECT_EQ(own.op, Op::kFlush);
  EXPECT_EQ(own.chain, planned.steps[0].chain);
  EXPECT_EQ(recorded.chain, planned.steps[1].chain);
  EXPECT_THAT(std::vector(own.required.begin(), own.required.begin() + own.required_count),
              ElementsAre(planned.steps[5].gate_slot | Dependencies::kIfLeftOut));
  EXPECT_EQ(recorded.offset_ns, 50'000);
  EXPECT_EQ(own.offset_ns, 50'000) << "it takes as long to call it";
  const PlannedIo& next = planned.steps[8];
  EXPECT_THAT(std::vector(next.required.begin(), next.required.begin() + next.required_count),
              Contains(own.gate_slot));
  EXPECT_EQ(planned.counts.planned, 7u);
  EXPECT_EQ(planned.counts.copies, 2u) << "of the commit record, and that flush";
}

}  // namespace
}  // namespace blktape
