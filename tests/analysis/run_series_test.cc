#include "analysis/run_series.h"

#include <cstdint>
#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace blktape {
namespace {

using ::testing::Optional;

constexpr int64_t kMs = 1'000'000;

TEST(RunSeriesTest, CountsWhatCompletedInEachMillisecond) {
  RunSeriesBuilder builder;
  // At the drive from 0.5 to 1.5 ms: half of each of two steps; it counts where it completed.
  builder.AddRequest(kMs / 2, kMs * 3 / 2, 4096);
  builder.AddRequest(kMs, kMs * 2 - 1, 8192);
  const RunSeries series = builder.Finish();
  EXPECT_EQ(series.step_ns, kMs);
  ASSERT_EQ(series.steps.size(), 2u);
  EXPECT_EQ(series.steps[0].ios_per_s, 0);
  EXPECT_DOUBLE_EQ(series.steps[0].depth_mean, 0.5);
  EXPECT_DOUBLE_EQ(series.steps[1].ios_per_s, 2'000);
  EXPECT_DOUBLE_EQ(series.steps[1].bytes_per_s, 12'288'000);
  EXPECT_NEAR(series.steps[1].depth_mean, 1.5, 1e-6);
}

TEST(RunSeriesTest, APercentileTakesAHundredResponses) {
  RunSeriesBuilder builder;
  for (int i = 0; i < 99; ++i) builder.AddResponse(0, 1'000);
  for (int i = 0; i < 100; ++i) builder.AddResponse(kMs, 1'000);
  builder.AddResponse(2 * kMs, 77);
  const RunSeries series = builder.Finish();
  ASSERT_EQ(series.steps.size(), 3u);
  EXPECT_EQ(series.steps[0].p99_ns, std::nullopt);
  EXPECT_THAT(series.steps[0].max_ns, Optional(1'000));
  EXPECT_THAT(series.steps[1].p99_ns, Optional(1'000));
  EXPECT_THAT(series.steps[2].max_ns, Optional(77));
}

TEST(RunSeriesTest, ALongRunHasLongerSteps) {
  RunSeriesBuilder builder;
  for (int64_t ms = 0; ms < 1'000; ++ms) builder.AddRequest(ms * kMs, ms * kMs + 10, 512);
  const RunSeries series = builder.Finish();
  // 1, 2, 4, 8, 16 ms: the shortest of which at most 120 cover a second.
  EXPECT_EQ(series.step_ns, 16 * kMs);
  ASSERT_EQ(series.steps.size(), 63u);
  for (int i = 0; i < 62; ++i) EXPECT_DOUBLE_EQ(series.steps[i].ios_per_s, 1'000);
}

}  // namespace
}  // namespace blktape
