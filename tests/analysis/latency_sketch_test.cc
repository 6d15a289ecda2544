#include "analysis/latency_sketch.h"

#include <cmath>
#include <cstdint>

#include "analysis/latency_histogram.h"
#include "gtest/gtest.h"

namespace blktape {
namespace {

TEST(LatencySketchTest, BucketsMeetWithoutGapOrOverlap) {
  for (int bucket = 0; bucket < LatencySketch::kBuckets; ++bucket) {
    const int64_t low_ns = LatencySketch::LowNs(bucket);
    EXPECT_EQ(LatencySketch::BucketOf(low_ns), bucket);
    EXPECT_EQ(LatencySketch::BucketOf(LatencySketch::LowNs(bucket + 1) - 1), bucket);
  }
  EXPECT_EQ(LatencySketch::LowNs(LatencySketch::kBuckets), int64_t{1} << 41);
  EXPECT_EQ(LatencySketch::BucketOf(INT64_MAX), LatencySketch::kBuckets - 1);
}

TEST(LatencySketchTest, APercentileIsWithinItsBound) {
  for (int64_t ns = 1; ns < (int64_t{1} << 40); ns = ns * 9 / 8 + 1) {
    LatencySketch sketch;
    sketch.Add(0);
    sketch.Add(ns);
    sketch.Add(INT64_MAX);
    const int64_t median_ns = sketch.PercentileNs(kP50).value();
    EXPECT_LE(std::abs(static_cast<double>(median_ns - ns)),
              static_cast<double>(ns) * LatencySketch::kRelativeErrorBound)
        << ns;
  }
}

TEST(LatencySketchTest, CountMeanAndEndsAreExact) {
  LatencySketch sketch;
  EXPECT_FALSE(sketch.mean_ns().has_value());
  EXPECT_FALSE(sketch.PercentileNs(kP50).has_value());
  for (const int64_t ns : {1'000, 3'000, 11'000}) sketch.Add(ns);
  LatencySketch other;
  other.Add(1);
  sketch += other;
  EXPECT_EQ(sketch.count(), 4u);
  EXPECT_EQ(sketch.min_ns(), 1);
  EXPECT_EQ(sketch.max_ns(), 11'000);
  EXPECT_DOUBLE_EQ(sketch.mean_ns().value(), 15'001.0 / 4);
}

TEST(LatencySketchTest, APercentileWithoutEnoughSamplesIsAbsent) {
  LatencySketch sketch;
  for (int i = 0; i < 99; ++i) sketch.Add(1'000);
  EXPECT_FALSE(sketch.PercentileNs(kP99).has_value());
  sketch.Add(1'000);
  EXPECT_EQ(sketch.PercentileNs(kP99), 1'000);
}

}  // namespace
}  // namespace blktape
