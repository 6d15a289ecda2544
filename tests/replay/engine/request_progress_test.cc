#include "replay/engine/request_progress.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace blktape {
namespace {

class RequestProgressTest : public testing::Test {
 protected:
  EngineRequest Request(Op op, uint64_t bytes, uint32_t flags = 0) {
    return {.tag = 7,
            .op = op,
            .flags = flags,
            .offset_bytes = 65536,
            .bytes = bytes,
            .buffer = buffer_};
  }
  std::byte buffer_[16384];
  RequestProgress progress_;
};

TEST_F(RequestProgressTest, AShortTransferIsContinuedWhereItEnded) {
  progress_.Start(Request(Op::kRead, 16384));
  EXPECT_FALSE(progress_.Book(4096, 0));
  const EngineStep rest = progress_.Next();
  EXPECT_EQ(rest.offset_bytes, 65536u + 4096);
  EXPECT_EQ(rest.bytes, 12288u);
  EXPECT_EQ(rest.buffer, buffer_ + 4096);
  EXPECT_TRUE(progress_.Book(12288, 5));
  const EngineCompletion completion = progress_.Completion(9);
  EXPECT_EQ(completion.tag, 7u);
  EXPECT_EQ(completion.bytes_done, 16384u);
  EXPECT_EQ(completion.error, 0u);
  EXPECT_EQ(completion.complete_ns, 9);
}

TEST_F(RequestProgressTest, NothingMoreMeansTheEndOfTheTarget) {
  progress_.Start(Request(Op::kRead, 16384));
  EXPECT_FALSE(progress_.Book(8192, 0));
  EXPECT_TRUE(progress_.Book(0, 0));
  EXPECT_EQ(progress_.Completion(0).bytes_done, 8192u);
  EXPECT_EQ(progress_.Completion(0).error, 0u);
}

TEST_F(RequestProgressTest, AnErrorAfterAPartKeepsTheCountOfThePart) {
  progress_.Start(Request(Op::kWrite, 16384));
  EXPECT_FALSE(progress_.Book(4096, 0));
  EXPECT_TRUE(progress_.Book(-EIO, 0));
  EXPECT_EQ(progress_.Completion(0).bytes_done, 4096u);
  EXPECT_EQ(progress_.Completion(0).error, static_cast<uint32_t>(EIO));
}

TEST_F(RequestProgressTest, WhatIsRefusedForTheMomentIsAskedAgain) {
  progress_.Start(Request(Op::kWrite, 4096));
  EXPECT_FALSE(progress_.Book(-EAGAIN, 0));
  EXPECT_FALSE(progress_.Book(-EINTR, RequestProgress::kRetryNs - 1));
  EXPECT_EQ(progress_.Next().bytes, 4096u);
  EXPECT_TRUE(progress_.Book(4096, RequestProgress::kRetryNs));
  EXPECT_EQ(progress_.Completion(0).error, 0u);
}

TEST_F(RequestProgressTest, WhatIsRefusedForHalfAMinuteHasFailed) {
  progress_.Start(Request(Op::kWrite, 4096));
  EXPECT_FALSE(progress_.Book(-EAGAIN, 100));
  EXPECT_TRUE(progress_.Book(-EAGAIN, 100 + RequestProgress::kRetryNs));
  EXPECT_EQ(progress_.Completion(0).error, static_cast<uint32_t>(EAGAIN));
}

TEST_F(RequestProgressTest, PreflushAsksForAFlushAndThenForTheWrite) {
  progress_.Start(Request(Op::kWrite, 4096, kFlagPreflush | kFlagFua));
  EXPECT_EQ(progress_.Next().op, Op::kFlush);
  EXPECT_FALSE(progress_.Book(0, 0));
  EXPECT_EQ(progress_.Next().op, Op::kWrite);
  EXPECT_TRUE(progress_.Next().durable);
  EXPECT_TRUE(progress_.Book(4096, 0));
  EXPECT_EQ(progress_.Completion(0).bytes_done, 4096u);
}

// The empty write with both flags that device-mapper sends ahead is a flush before and one after,
// where the disk has no FUA.
TEST_F(RequestProgressTest, WhatDeviceMapperPassedOnFlushesTwiceWithoutFua) {
  const auto flushes = [this](uint32_t flags, bool has_fua) {
    progress_.Start(Request(Op::kWrite, 4096, flags | kFlagMapped), has_fua);
    int count = 0;
    for (; progress_.Next().op == Op::kFlush; ++count) EXPECT_FALSE(progress_.Book(0, 0));
    EXPECT_EQ(progress_.Next().durable, (flags & kFlagFua) != 0);
    return count;
  };
  EXPECT_EQ(flushes(kFlagPreflush | kFlagFua, /*has_fua=*/false), 2);
  EXPECT_EQ(flushes(kFlagPreflush | kFlagFua, /*has_fua=*/true), 1);
  EXPECT_EQ(flushes(kFlagPreflush, /*has_fua=*/false), 1);
}

TEST_F(RequestProgressTest, AFailedPreflushFailsTheWriteUnasked) {
  progress_.Start(Request(Op::kWrite, 4096, kFlagPreflush));
  EXPECT_TRUE(progress_.Book(-EIO, 0));
  EXPECT_EQ(progress_.Completion(0).error, static_cast<uint32_t>(EIO));
  EXPECT_EQ(progress_.Completion(0).bytes_done, 0u);
}

TEST_F(RequestProgressTest, APreflushWithoutDataIsAFlush) {
  progress_.Start(Request(Op::kWrite, 0, kFlagPreflush));
  EXPECT_EQ(progress_.Next().op, Op::kFlush);
  EXPECT_TRUE(progress_.Book(0, 0));
}

TEST_F(RequestProgressTest, ADiscardHasDoneAllOfItOrNothing) {
  progress_.Start(Request(Op::kDiscard, 1ull << 40));
  EXPECT_EQ(progress_.Next().bytes, 1ull << 40);
  EXPECT_TRUE(progress_.Book(0, 0));
  EXPECT_EQ(progress_.Completion(0).bytes_done, 1ull << 40);
  progress_.Start(Request(Op::kDiscard, 4096));
  EXPECT_TRUE(progress_.Book(-EOPNOTSUPP, 0));
  EXPECT_EQ(progress_.Completion(0).bytes_done, 0u);
}

TEST_F(RequestProgressTest, ATransferOfGigabytesIsAskedForInParts) {
  progress_.Start(Request(Op::kWrite, 3ull << 30));
  EXPECT_EQ(progress_.Next().bytes, 1ull << 30);
  EXPECT_FALSE(progress_.Book(1 << 30, 0));
  EXPECT_EQ(progress_.Next().offset_bytes, 65536u + (1ull << 30));
}

TEST_F(RequestProgressTest, ZoneAppendIsRefusedUnasked) {
  EXPECT_EQ(progress_.Start(Request(Op::kZoneAppend, 4096)), static_cast<uint32_t>(EOPNOTSUPP));
  EXPECT_EQ(progress_.Completion(0).error, static_cast<uint32_t>(EOPNOTSUPP));
  EXPECT_EQ(progress_.Start(Request(Op::kRead, 4096)), 0u);
}

TEST_F(RequestProgressTest, NothingOfTheRequestBeforeRemains) {
  progress_.Start(Request(Op::kWrite, 4096));
  progress_.MarkPunted();
  progress_.Book(-EIO, 0);
  progress_.Start(Request(Op::kRead, 4096));
  progress_.Book(4096, 0);
  EXPECT_EQ(progress_.Completion(0).error, 0u);
  EXPECT_FALSE(progress_.Completion(0).punted);
}

}  // namespace
}  // namespace blktape
