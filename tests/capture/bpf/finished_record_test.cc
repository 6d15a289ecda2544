#include "capture/bpf/finished_record.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/units.h"
#include "capture/bpf/block_abi.h"
#include "format/io_record.h"

namespace blktape {
namespace {

blktape_finished Event(Op op) {
  blktape_finished event{};
  event.device = 2;
  event.op = static_cast<uint8_t>(op);
  event.start_ns = 1000;
  event.issue_ns = 1500;
  event.complete_ns = 9000;
  event.pid = 77;
  event.cpu = 3;
  return event;
}

TEST(FinishedRecordTest, AWriteIsToldWithAllThatIsKnownOfIt) {
  blktape_finished event = Event(Op::kWrite);
  event.sector = 2048;
  event.bytes = 12'288;
  event.flags = kFlagSync | kFlagFua;
  event.prio = 0x4007;
  const IoRecord record = RecordOf(event);
  EXPECT_EQ(record.device, 2u);
  EXPECT_EQ(record.op, Op::kWrite);
  EXPECT_EQ(record.lba, Lba(2048));
  EXPECT_EQ(record.bytes, 12'288u);
  EXPECT_EQ(record.flags, kFlagSync | kFlagFua);
  EXPECT_EQ(record.queue_ns, 1000);
  EXPECT_EQ(record.issue_ns, 1500);
  EXPECT_EQ(record.complete_ns, 9000);
  EXPECT_EQ(record.error, 0u);
  EXPECT_EQ(record.pid, 77u);
  EXPECT_EQ(record.cpu, 3u);
  EXPECT_EQ(record.prio, 0x4007u);
  EXPECT_EQ(record.merged_bios, std::nullopt);
}

TEST(FinishedRecordTest, WhoWokeItsThreadIsToldWithHowLongBefore) {
  blktape_finished event = Event(Op::kRead);
  EXPECT_EQ(RecordOf(event).waker, std::nullopt);
  EXPECT_EQ(RecordOf(event).since_wake_ns, std::nullopt);
  event.waker = 78;
  event.since_wake = 2'047;
  EXPECT_EQ(RecordOf(event).waker, 78u);
  EXPECT_EQ(RecordOf(event).since_wake_ns, 2'047u);
  event.since_wake = 3 << 11 | 1'025;
  EXPECT_EQ(RecordOf(event).since_wake_ns, 8'200u);  // 1,025 * 2^3
  event.since_wake = 0xffff;
  EXPECT_EQ(RecordOf(event).since_wake_ns, 2'047ull << 31);
  event.start_ns = 0;  // before what is not known
  EXPECT_EQ(RecordOf(event).waker, std::nullopt);
  EXPECT_EQ(RecordOf(event).since_wake_ns, std::nullopt);
}

TEST(FinishedRecordTest, AStampThatIsZeroIsAbsent) {
  blktape_finished event = Event(Op::kRead);
  event.start_ns = 0;
  EXPECT_EQ(RecordOf(event).queue_ns, std::nullopt);
  event.issue_ns = 0;
  EXPECT_EQ(RecordOf(event).issue_ns, std::nullopt);
}

TEST(FinishedRecordTest, WithoutACompletionThereIsNoResult) {
  blktape_finished event = Event(Op::kRead);
  event.complete_ns = 0;
  event.status = 7;
  const IoRecord record = RecordOf(event);
  EXPECT_EQ(record.complete_ns, std::nullopt);
  EXPECT_EQ(record.error, std::nullopt);
}

TEST(FinishedRecordTest, OneFlushForThreeFsyncsIsAskedFromTheFirstOn) {
  blktape_finished event = Event(Op::kFlush);
  event.flags = kFlagSync;
  event.bytes = 3;  // asked for
  const IoRecord record = RecordOf(event);
  EXPECT_EQ(record.lba, std::nullopt);
  EXPECT_EQ(record.flags, kFlagSync);
  EXPECT_EQ(record.queue_ns, 1000);
  EXPECT_EQ(record.merged_bios, 2u);
}

TEST(FinishedRecordTest, AFlushOfABioBasedDiskIsToldAsAnyOther) {
  blktape_finished event = Event(Op::kFlush);
  event.flags = kFlagSync | kFlagPreflush;
  event.issue_ns = 0;
  EXPECT_EQ(RecordOf(event).flags, kFlagSync);
}

TEST(FinishedRecordTest, NobodyQueuedADerivedFlush) {
  blktape_finished event = Event(Op::kFlush);
  event.flags = kFlagDerived;
  const IoRecord record = RecordOf(event);
  EXPECT_EQ(record.queue_ns, std::nullopt);
  EXPECT_EQ(record.issue_ns, 1500);
  EXPECT_EQ(record.flags, kFlagDerived);
}

TEST(FinishedRecordTest, WhatIsStillInItsSlotIsIssuedAndNotCompleted) {
  blktape_slot slot{};
  slot.rq = 0xffff888012345678;
  slot.device = 1;
  slot.op = static_cast<uint8_t>(Op::kDiscard);
  slot.sector = 64;
  slot.bytes = 4 << 20;
  slot.start_ns = 10;
  slot.issue_ns = 20;
  slot.pid = 5;
  slot.cpu = 1;
  slot.flags = kFlagSync;
  slot.prio = 2;
  const IoRecord record = RecordOf(slot);
  EXPECT_EQ(record.device, 1u);
  EXPECT_EQ(record.op, Op::kDiscard);
  EXPECT_EQ(record.lba, Lba(64));
  EXPECT_EQ(record.bytes, 4u << 20);
  EXPECT_EQ(record.queue_ns, 10);
  EXPECT_EQ(record.issue_ns, 20);
  EXPECT_EQ(record.complete_ns, std::nullopt);
  EXPECT_EQ(record.pid, 5u);
  EXPECT_EQ(record.cpu, 1u);
  EXPECT_EQ(record.flags, kFlagSync);
  EXPECT_EQ(record.prio, 2u);
}

// The table blk_errors of block/blk-core.c, as far as its numbers are the same in all kernels.
TEST(ErrnoOfStatusTest, IsWhatTheKernelReturnsToSoftware) {
  const std::pair<int32_t, uint32_t> kTable[] = {
      {0, 0},         {1, EOPNOTSUPP}, {2, ETIMEDOUT}, {3, ENOSPC}, {4, ENOLINK},
      {5, EREMOTEIO}, {6, EBADE},      {7, ENODATA},   {8, EILSEQ}, {9, ENOMEM},
      {10, EIO},      {11, EREMCHG},   {12, EAGAIN},   {13, EBUSY},
  };
  for (const auto& [status, error] : kTable) EXPECT_EQ(ErrnoOfStatus(status), error) << status;
}

TEST(ErrnoOfStatusTest, OldKernelsGiveTheErrnoItself) {
  EXPECT_EQ(ErrnoOfStatus(-ENOSPC), static_cast<uint32_t>(ENOSPC));
}

TEST(ErrnoOfStatusTest, AnUnknownFailureIsAFailure) {
  EXPECT_EQ(ErrnoOfStatus(200), static_cast<uint32_t>(EIO));
}

}  // namespace
}  // namespace blktape
