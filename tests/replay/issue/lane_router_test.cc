#include "replay/issue/lane_router.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

namespace blktape {
namespace {

constexpr uint64_t kRegion = 64 << 10;

PlannedIo Planned(Op op, uint64_t begin, uint64_t bytes = 4096) {
  return {.op = op, .offset_bytes = begin, .bytes = bytes};
}

class LaneRouterTest : public testing::Test {
 protected:
  std::array<LaneProgress, 3> lanes_;
  LaneRouter router_{lanes_, /*keep_order=*/true};
  void Complete(uint32_t lane, uint64_t through) { lanes_[lane].complete_through = through; }
};

TEST_F(LaneRouterTest, WhatConflictsWithNothingGoesWhereThereIsRoom) {
  EXPECT_EQ(router_.Place(Planned(Op::kWrite, 0), 0).lane, 0u);
  EXPECT_EQ(router_.Place(Planned(Op::kWrite, 10 * kRegion), 1).lane, 1u);
  EXPECT_EQ(router_.Place(Planned(Op::kRead, 20 * kRegion), 2).lane, 2u);
  EXPECT_EQ(router_.Place(Planned(Op::kRead, 20 * kRegion), 0).lane, 0u) << "reads do not conflict";
}

TEST_F(LaneRouterTest, AConflictFollowsTheFirstToItsLane) {
  router_.Place(Planned(Op::kWrite, 0), 1);
  const LaneRouter::Route route = router_.Place(Planned(Op::kRead, 4096), 2);
  EXPECT_EQ(route.lane, 1u);
  EXPECT_EQ(route.after, (std::array<uint64_t, kMaxLanes>{}));
  Complete(1, 2);
  EXPECT_EQ(router_.Place(Planned(Op::kRead, 4096), 2).lane, 2u) << "both are complete";
}

TEST_F(LaneRouterTest, AConflictWithSeveralLanesWaitsForAllButItsOwn) {
  router_.Place(Planned(Op::kWrite, 0), 0);            // lane 0, its 1st
  router_.Place(Planned(Op::kRead, 50 * kRegion), 1);  // lane 1, its 1st
  router_.Place(Planned(Op::kWrite, kRegion), 1);      // lane 1, its 2nd
  // Over both regions. Lane 1 has further to go, so it is its lane.
  const LaneRouter::Route route = router_.Place(Planned(Op::kWrite, kRegion - 4096, 8192), 2);
  EXPECT_EQ(route.lane, 1u);
  EXPECT_EQ(route.after[0], 1u);
  EXPECT_EQ(route.after[1], 0u);
  EXPECT_EQ(route.after[2], 0u);
}

TEST_F(LaneRouterTest, ADiscardOfAWholeDiskWaitsForAllAndAllWaitForIt) {
  router_.Place(Planned(Op::kWrite, 0), 0);
  router_.Place(Planned(Op::kRead, uint64_t{7} << 30), 1);
  const LaneRouter::Route whole = router_.Place(Planned(Op::kDiscard, 0, uint64_t{1} << 40), 2);
  EXPECT_EQ(whole.after[whole.lane == 0 ? 1 : 0], 1u);
  EXPECT_EQ(router_.Place(Planned(Op::kRead, uint64_t{9} << 30), 2).lane, whole.lane);
}

TEST_F(LaneRouterTest, WithoutOrderNothingConflicts) {
  LaneRouter free(lanes_, /*keep_order=*/false);
  EXPECT_EQ(free.Place(Planned(Op::kWrite, 0), 0).lane, 0u);
  EXPECT_EQ(free.Place(Planned(Op::kWrite, 0), 1).lane, 1u);
}

// The promise itself: of two I/Os that overlap and of which one writes, the later is in the lane of
// the earlier, or waits for it, or came when it was complete.
TEST_F(LaneRouterTest, NoConflictEscapes) {
  struct Placed {
    PlannedIo io;
    uint32_t lane;
    uint64_t number;
  };
  std::mt19937_64 random(1);
  std::vector<Placed> all;
  std::array<uint64_t, 3> placed{};
  uint64_t conflicts = 0;
  for (int i = 0; i < 4'000; ++i) {
    const uint64_t blocks = 1 + random() % (i % 100 == 0 ? 2'000 : 40);
    const PlannedIo io =
        Planned(random() % 2 == 0 ? Op::kWrite : Op::kRead, random() % 8'192 * 4096, blocks * 4096);
    if (random() % 3 == 0) {
      const uint32_t lane = random() % 3;
      const uint64_t through = lanes_[lane].complete_through;
      Complete(lane, through + random() % (placed[lane] - through + 1));
    }
    const LaneRouter::Route route = router_.Place(io, random() % 3);
    for (const Placed& other : all) {
      const bool overlap = other.io.offset_bytes < io.offset_bytes + io.bytes &&
                           io.offset_bytes < other.io.offset_bytes + other.io.bytes;
      if (!overlap || (other.io.op == Op::kRead && io.op == Op::kRead)) continue;
      ++conflicts;
      ASSERT_TRUE(other.lane == route.lane || route.after[other.lane] >= other.number ||
                  lanes_[other.lane].complete_through >= other.number);
    }
    all.push_back({io, route.lane, ++placed[route.lane]});
  }
  EXPECT_GT(conflicts, 1'000u);
}

}  // namespace
}  // namespace blktape
