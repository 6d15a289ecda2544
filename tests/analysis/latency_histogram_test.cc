#include "analysis/latency_histogram.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace blktape {
namespace {

using ::testing::Eq;
using ::testing::Optional;

// By the definition: sorted[ceil(p * n) - 1].
int64_t NearestRank(std::vector<int64_t> samples, uint32_t ppm) {
  std::sort(samples.begin(), samples.end());
  const uint64_t n = samples.size();
  uint64_t rank = 0;
  while (rank * 1'000'000 < n * ppm) ++rank;
  return samples[rank - 1];
}

TEST(LatencyHistogramTest, WithoutSamplesEverythingIsAbsent) {
  const LatencyHistogram empty;
  EXPECT_EQ(empty.count(), 0u);
  EXPECT_EQ(empty.min_ns(), std::nullopt);
  EXPECT_EQ(empty.max_ns(), std::nullopt);
  EXPECT_EQ(empty.mean_ns(), std::nullopt);
  EXPECT_EQ(empty.PercentileNs(kP50), std::nullopt);
}

TEST(LatencyHistogramTest, PercentilesAreSamplesByNearestRank) {
  LatencyHistogram histogram;
  for (const int64_t ns : {50, 15, 40, 35, 20}) histogram.Add(ns);
  // The textbook example: of 15 20 35 40 50 the 30th percentile is the 2nd, the 40th the 2nd, the
  // 50th the 3rd, the 100th the 5th.
  EXPECT_THAT(histogram.PercentileNs(300'000), Optional(20));
  EXPECT_THAT(histogram.PercentileNs(400'000), Optional(20));
  EXPECT_THAT(histogram.PercentileNs(kP50), Optional(35));
  EXPECT_THAT(histogram.PercentileNs(1'000'000), Optional(50));
  EXPECT_THAT(histogram.mean_ns(), Optional(32.0));
  EXPECT_THAT(histogram.min_ns(), Optional(15));
  EXPECT_THAT(histogram.max_ns(), Optional(50));
}

TEST(LatencyHistogramTest, RankOfAWholeProductIsNotRoundedUp) {
  LatencyHistogram histogram;
  for (int64_t ns = 1; ns <= 1000; ++ns) histogram.Add(ns);
  // 0.999 * 1000 is 999, not a trifle more, as it is in floating point.
  EXPECT_THAT(histogram.PercentileNs(kP999), Optional(999));
  EXPECT_THAT(histogram.PercentileNs(kP99), Optional(990));
}

TEST(LatencyHistogramTest, SaysHowManySamplesAPercentileNeeds) {
  EXPECT_EQ(LatencyHistogram::SamplesNeeded(kP50), 2u);
  EXPECT_EQ(LatencyHistogram::SamplesNeeded(kP95), 20u);
  EXPECT_EQ(LatencyHistogram::SamplesNeeded(kP99), 100u);
  EXPECT_EQ(LatencyHistogram::SamplesNeeded(kP999), 1'000u);
  EXPECT_EQ(LatencyHistogram::SamplesNeeded(kP9999), 10'000u);
  LatencyHistogram histogram;
  for (int i = 0; i < 99; ++i) histogram.Add(7);
  EXPECT_EQ(histogram.MeaningfulPercentileNs(kP99), std::nullopt);
  histogram.Add(7);
  EXPECT_THAT(histogram.MeaningfulPercentileNs(kP99), Optional(7));
}

TEST(LatencyHistogramTest, EveryBucketKeepsItsErrorBoundAtBothEdges) {
  // At each power of two and each division of it, the smallest value of a bucket, the largest of
  // the one before and their neighbours.
  std::vector<int64_t> values;
  for (int exponent = 0; exponent < 63; ++exponent) {
    const int64_t base = int64_t{1} << exponent;
    const int64_t width = std::max<int64_t>(1, base >> LatencyHistogram::kSubBits);
    for (int64_t sub = 0; sub < (1 << LatencyHistogram::kSubBits); ++sub) {
      for (const int64_t delta : {int64_t{-1}, int64_t{0}, int64_t{1}, width / 2}) {
        const int64_t value = base + sub * width + delta;
        if (value >= 0) values.push_back(value);
      }
    }
  }
  values.push_back(std::numeric_limits<int64_t>::max());
  // As many samples below as above, so that the median is the one in the middle; the two extremes
  // keep the clamp to minimum and maximum from hiding an error.
  LatencyHistogram around;
  for (int i = 0; i < 35'000; ++i) {
    around.Add(0);
    around.Add(std::numeric_limits<int64_t>::max());
  }
  ASSERT_FALSE(around.exact());
  for (const int64_t value : values) {
    LatencyHistogram histogram = around;
    histogram.Add(value);
    const int64_t median = *histogram.PercentileNs(kP50);
    ASSERT_LE(std::abs(static_cast<long double>(median) - static_cast<long double>(value)),
              static_cast<long double>(value) * LatencyHistogram::kRelativeErrorBound)
        << "value " << value << " gave " << median;
  }
}

TEST(LatencyHistogramTest, ManySamplesStayWithinTheBound) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> latency(11.0, 2.0);
  LatencyHistogram histogram;
  std::vector<int64_t> samples;
  for (uint64_t i = 0; i < 3 * LatencyHistogram::kExactSamples; ++i) {
    samples.push_back(static_cast<int64_t>(latency(random)));
    histogram.Add(samples.back());
  }
  ASSERT_FALSE(histogram.exact());
  for (const uint32_t ppm : {1u, 10'000u, kP50, kP95, kP99, kP999, kP9999, 1'000'000u}) {
    const double truth = static_cast<double>(NearestRank(samples, ppm));
    EXPECT_NEAR(static_cast<double>(*histogram.PercentileNs(ppm)), truth,
                truth * LatencyHistogram::kRelativeErrorBound)
        << ppm;
  }
  EXPECT_THAT(histogram.max_ns(), Optional(*std::max_element(samples.begin(), samples.end())));
}

TEST(LatencyHistogramTest, IsExactUpToTheStatedNumberOfSamples) {
  LatencyHistogram histogram;
  std::vector<int64_t> samples;
  std::mt19937_64 random(3);
  while (samples.size() < LatencyHistogram::kExactSamples) {
    samples.push_back(static_cast<int64_t>(random() >> 20));
    histogram.Add(samples.back());
  }
  EXPECT_TRUE(histogram.exact());
  for (const uint32_t ppm : {kP50, kP99, kP9999}) {
    EXPECT_THAT(histogram.PercentileNs(ppm), Optional(NearestRank(samples, ppm)));
  }
  histogram.Add(1);
  EXPECT_FALSE(histogram.exact());
}

TEST(LatencyHistogramTest, MergingEqualsAddingAll) {
  std::mt19937_64 random(5);
  for (const uint64_t sizes : {uint64_t{10}, uint64_t{40'000}, uint64_t{70'000}}) {
    LatencyHistogram a, b, all;
    for (uint64_t i = 0; i < sizes; ++i) {
      const int64_t ns = static_cast<int64_t>(random() % 1'000'000'000);
      (i % 3 == 0 ? a : b).Add(ns);
      all.Add(ns);
    }
    LatencyHistogram merged = a;
    merged.Merge(b);
    EXPECT_EQ(merged.count(), all.count());
    EXPECT_EQ(merged.exact(), all.exact());
    EXPECT_EQ(merged.mean_ns(), all.mean_ns());
    EXPECT_EQ(merged.min_ns(), all.min_ns());
    for (const uint32_t ppm : {kP50, kP99, kP999}) {
      EXPECT_EQ(merged.PercentileNs(ppm), all.PercentileNs(ppm));
    }
  }
}

TEST(LatencyHistogramTest, MeanIsExactBeyondSixtyFourBits) {
  LatencyHistogram histogram;
  const int64_t huge = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < 4; ++i) histogram.Add(huge);
  EXPECT_DOUBLE_EQ(*histogram.mean_ns(), static_cast<double>(huge));
}

}  // namespace
}  // namespace blktape
