#include "replay/issue/gated_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>

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
  GatedQueueTest() { queue_.Start(kStartNs); }
  void Add(const PlannedIo& step) { queue_.Add(step, INT64_MIN); }
  // Takes the next, which is to be this one.
  uint32_t Take(uint64_t sequence, int64_t due_ns) {
    EXPECT_EQ(queue_.NextDueNs(), due_ns);
    const GatedQueue::Taken taken = queue_.Take();
    EXPECT_EQ(taken.io.sequence, sequence);
    EXPECT_EQ(taken.due_ns, due_ns);
    return taken.gate;
  }
  GatedQueue queue_{8, 8};
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

}  // namespace
}  // namespace blktape
