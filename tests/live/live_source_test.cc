#include "capture/source/live_source.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace blktape {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;
constexpr uint64_t kGiB = 1024 * kMiB;

TEST(BufferPlanTest, ADesktopHasSixteenMebibytesInAll) {
  const BufferPlan plan = PlanBuffers(16 * kGiB, 8);
  EXPECT_EQ(plan.bytes_per_cpu, 2 * kMiB);
  EXPECT_EQ(plan.limit_bytes, 256 * kMiB) << "16 times as much";
}

TEST(BufferPlanTest, ASmallMachineGivesASixtyFourthOfItsMemory) {
  const BufferPlan plan = PlanBuffers(256 * kMiB, 2);
  EXPECT_EQ(plan.bytes_per_cpu, 2 * kMiB);
  EXPECT_EQ(plan.limit_bytes, 8 * kMiB) << "a thirty-second";
}

TEST(BufferPlanTest, ManyCpusHaveHalfAMebibyteEach) {
  const BufferPlan plan = PlanBuffers(64 * kGiB, 240);
  EXPECT_EQ(plan.bytes_per_cpu, 512 * kKiB);
  EXPECT_EQ(plan.limit_bytes, 240 * 16 * 512 * kKiB);
}

TEST(BufferPlanTest, TheBoundIsNeverBelowTheBeginning) {
  const BufferPlan plan = PlanBuffers(64 * kMiB, 16);
  EXPECT_EQ(plan.bytes_per_cpu, 512 * kKiB);
  EXPECT_EQ(plan.limit_bytes, 8 * kMiB);
}

TEST(BufferPlanTest, RingsGrowToAnEighthOfWhatTheControlGroupAllows) {
  const BufferPlan plan = PlanBuffers(16 * kGiB, 8, 512 * kMiB);
  EXPECT_EQ(plan.bytes_per_cpu, 2 * kMiB);
  EXPECT_EQ(plan.limit_bytes, 64 * kMiB);
  EXPECT_EQ(PlanBuffers(16 * kGiB, 8, 8 * kGiB).limit_bytes, 256 * kMiB);
  EXPECT_EQ(PlanBuffers(16 * kGiB, 8, 8 * kMiB).limit_bytes, kMiB) << "they stay as they are";
}

TEST(BufferPlanTest, HereIsTheSumOfAllRingsWhatTheirNumberAllows) {
  const BufferPlan one = PlanBuffersHere(1);
  const BufferPlan four = PlanBuffersHere(4);
  EXPECT_GE(one.bytes_per_cpu, four.bytes_per_cpu);
  EXPECT_GE(4 * four.bytes_per_cpu, one.bytes_per_cpu);
}

}  // namespace
}  // namespace blktape
