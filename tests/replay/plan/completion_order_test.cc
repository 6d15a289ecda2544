#include "replay/plan/completion_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace blktape {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(CompletionOrderTest, AnIoWaitsForThoseThatHadCompletedBeforeItArrived) {
  CompletionOrder order(8);
  std::vector<uint32_t> required;
  order.Arrive(0, &required);
  const uint32_t slow = *order.Add(/*complete_ns=*/50);
  order.Arrive(5, &required);
  const uint32_t quick = *order.Add(20);
  EXPECT_THAT(required, IsEmpty());
  EXPECT_TRUE(!order.idle());

  order.Arrive(30, &required);
  EXPECT_THAT(required, ElementsAre(quick));
  EXPECT_EQ(order.last_complete_ns(), 20);

  required.clear();
  order.Arrive(50, &required);  // a completion at the very moment of the arrival came before it
  EXPECT_THAT(required, ElementsAre(slow));
  EXPECT_TRUE(order.idle());
}

TEST(CompletionOrderTest, ASlotIsReusedOnlyAfterItWasHandedOut) {
  CompletionOrder order(8);
  std::vector<uint32_t> required;
  order.Arrive(0, &required);
  EXPECT_EQ(order.Add(10), 0u);
  EXPECT_EQ(order.Add(99), 1u);
  order.Arrive(20, &required);
  EXPECT_EQ(order.Add(30), 0u);
  EXPECT_EQ(order.Add(30), 2u);
}

TEST(CompletionOrderTest, AnIoBeyondTheSlotsGatesNothing) {
  CompletionOrder order(1);
  EXPECT_EQ(order.Add(10), 0u);
  EXPECT_EQ(order.Add(20), std::nullopt);
}

}  // namespace
}  // namespace blktape
