#include "replay/engine/flush_order.h"

#include <gtest/gtest.h>

#include <optional>

namespace blktape {
namespace {

using Kind = FlushOrder::Kind;

// Slots: 1 and 2 are flagged writes (a file system's commit), 3 and above flushes of programs. What
// is expected is what block/blk-flush.c does with a write that has both flags.

TEST(FlushOrderTest, AFlushAskedForDuringAPreflushWaitsUntilTheWriteIsSubmitted) {
  FlushOrder order(8);
  EXPECT_TRUE(order.Submit(1, Kind::kPreflush));
  EXPECT_FALSE(order.Submit(3, Kind::kFlush));
  EXPECT_FALSE(order.Submit(4, Kind::kFlush));
  EXPECT_EQ(order.TakeReady(), std::nullopt);
  EXPECT_TRUE(order.Submit(1, Kind::kDurable));
  EXPECT_EQ(order.TakeReady(), 3);
  EXPECT_EQ(order.TakeReady(), 4);
  EXPECT_EQ(order.TakeReady(), std::nullopt);
}

// Both share one flush: it has not begun.
TEST(FlushOrderTest, AFlushAskedForBeforeThePreflushBeginsGoesWithIt) {
  FlushOrder order(8);
  EXPECT_TRUE(order.Submit(3, Kind::kFlush));
  EXPECT_TRUE(order.Submit(1, Kind::kPreflush));
  EXPECT_TRUE(order.Submit(4, Kind::kFlush));
  order.Complete(3);
  // Now it runs.
  EXPECT_FALSE(order.Submit(5, Kind::kFlush));
  order.Complete(4);
  EXPECT_EQ(order.TakeReady(), std::nullopt);
  EXPECT_TRUE(order.Submit(1, Kind::kDurable));
  EXPECT_EQ(order.TakeReady(), 5);
}

// The block layer defers what is asked for while a durable write is at its data, and runs one flush
// for all.
TEST(FlushOrderTest, NothingWaitsForADurableWriteHere) {
  FlushOrder order(8);
  EXPECT_TRUE(order.Submit(1, Kind::kDurable));
  EXPECT_TRUE(order.Submit(2, Kind::kPreflush));
  EXPECT_TRUE(order.Submit(3, Kind::kFlush));
  order.Complete(1);
  EXPECT_FALSE(order.Submit(4, Kind::kFlush));
}

TEST(FlushOrderTest, ASecondFlaggedWriteThatWaitedHoldsBackOnceItsFlushRuns) {
  FlushOrder order(8);
  EXPECT_TRUE(order.Submit(1, Kind::kPreflush));
  EXPECT_FALSE(order.Submit(2, Kind::kPreflush));
  EXPECT_TRUE(order.Submit(1, Kind::kDurable));
  EXPECT_EQ(order.TakeReady(), 2);
  // The first's own flush comes first, which the second's joins: it has not begun.
  EXPECT_TRUE(order.Submit(3, Kind::kFlush));
  order.Complete(1);
  EXPECT_FALSE(order.Submit(4, Kind::kFlush));
}

// A drive with FUA of its own: the block layer defers flushes until the data are written.
TEST(FlushOrderTest, WithoutAFlushBehindTheWriteTheyWaitForItsEnd) {
  FlushOrder order(8);
  EXPECT_TRUE(order.Submit(1, Kind::kPreflush));
  EXPECT_FALSE(order.Submit(3, Kind::kFlush));
  EXPECT_TRUE(order.Submit(1, Kind::kData));
  EXPECT_EQ(order.TakeReady(), std::nullopt);
  order.Complete(1);
  EXPECT_EQ(order.TakeReady(), 3);
}

TEST(FlushOrderTest, APreflushThatFailsHoldsNothingBack) {
  FlushOrder order(8);
  EXPECT_TRUE(order.Submit(1, Kind::kPreflush));
  EXPECT_FALSE(order.Submit(3, Kind::kFlush));
  order.Complete(1);
  EXPECT_EQ(order.TakeReady(), 3);
}

TEST(FlushOrderTest, AStepThatWasRefusedIsSubmittedAgain) {
  FlushOrder order(8);
  EXPECT_TRUE(order.Submit(1, Kind::kPreflush));
  EXPECT_TRUE(order.Submit(1, Kind::kPreflush));
  EXPECT_TRUE(order.Submit(1, Kind::kDurable));
  EXPECT_TRUE(order.Submit(1, Kind::kDurable));
  EXPECT_TRUE(order.Submit(2, Kind::kData));
}

}  // namespace
}  // namespace blktape
