#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>

#include "base/units.h"
#include "format/io_record.h"
#include "replay/plan/plan.h"
#include "replay/replay_options.h"
#include "replay/setup.h"
#include "tests/replay/plan/temp_trace.h"

namespace blktape {
namespace {

constexpr std::atomic<bool> kRunOn = false;

IoRecord IoAt(Op op, int64_t queue_ns) {
  IoRecord io;
  io.op = op;
  io.queue_ns = queue_ns;
  io.issue_ns = queue_ns;
  io.complete_ns = queue_ns + kNanosPerMilli;
  io.lba = Lba(8);
  io.bytes = 4096;
  return io;
}

// A read, nine seconds of nothing, a write and a read.
ReplayOptions WithAPause() {
  ReplayOptions options;
  options.trace_path =
      TempTrace("pause.tape", {IoAt(Op::kRead, 0), IoAt(Op::kWrite, 9 * kNanosPerSecond),
                               IoAt(Op::kRead, 9 * kNanosPerSecond + 5 * kNanosPerMilli)});
  return options;
}

PlanOptions ToOneTarget() {
  PlanOptions plan;
  plan.target_of_device = {0};
  return plan;
}

TEST(FindExpectedTimesTest, TheRecordingsTimesAtTheReplaysSpeed) {
  PlanOptions plan = ToOneTarget();
  const auto recorded = FindExpectedTimes(WithAPause(), plan, kRunOn);
  ASSERT_TRUE(recorded.ok()) << recorded.status().message();
  EXPECT_EQ(recorded->At(1), 9 * kNanosPerSecond);
  EXPECT_EQ(recorded->total_ns(), 9 * kNanosPerSecond + 5 * kNanosPerMilli);
  plan.speed = 2;
  EXPECT_EQ(FindExpectedTimes(WithAPause(), plan, kRunOn)->At(1), 9 * kNanosPerSecond / 2);
}

// The first I/O completes after 1 ms; of what is idle then 2 s stay.
TEST(FindExpectedTimesTest, IdleTimeIsCutAndLeftOutIosAreNotCounted) {
  PlanOptions plan = ToOneTarget();
  plan.idle_cap_ns = 2 * kNanosPerSecond;
  plan.skip_writes = true;
  const auto cut = FindExpectedTimes(WithAPause(), plan, kRunOn);
  ASSERT_TRUE(cut.ok()) << cut.status().message();
  EXPECT_EQ(cut->At(0), 0);
  EXPECT_EQ(cut->At(1), 2 * kNanosPerSecond + 6 * kNanosPerMilli);
  EXPECT_EQ(cut->At(2), cut->total_ns());
}

TEST(FindExpectedTimesTest, AStopEndsIt) {
  const std::atomic<bool> stop = true;
  EXPECT_EQ(FindExpectedTimes(WithAPause(), ToOneTarget(), stop).status().code(),
            StatusCode::kCancelled);
}

}  // namespace
}  // namespace blktape
