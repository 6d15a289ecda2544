#include "analysis/footprint_meter.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "analysis/distinct_counter.h"
#include "gtest/gtest.h"

namespace blktape {
namespace {

TEST(FootprintMeterTest, ABlockCountsOnceHoweverItWasTouched) {
  FootprintMeter footprint;
  footprint.Add(0, 0, 4096, /*write=*/false);
  footprint.Add(0, 512, 512, /*write=*/false);
  footprint.Add(0, 4095, 2, /*write=*/true);  // the last byte of block 0, the first of block 1
  const FootprintMeter::Sizes sizes = footprint.Measure();
  EXPECT_TRUE(sizes.exact);
  EXPECT_EQ(sizes.bytes, 2u * 4096);
  EXPECT_EQ(sizes.read_bytes, 4096u);
  EXPECT_EQ(sizes.write_bytes, 2u * 4096);
}

TEST(FootprintMeterTest, DevicesAreApart) {
  FootprintMeter footprint;
  footprint.Add(0, 8192, 4096, false);
  footprint.Add(1, 8192, 4096, false);
  EXPECT_EQ(footprint.Measure().bytes, 8192u);
}

TEST(FootprintMeterTest, NothingTouchedIsNothing) {
  FootprintMeter footprint;
  footprint.Add(0, 4096, 0, true);
  EXPECT_EQ(footprint.Measure().bytes, 0u);
  EXPECT_TRUE(footprint.Measure().exact);
}

// Not a std::set, which takes ten seconds here.
size_t Distinct(std::vector<std::pair<uint32_t, uint64_t>> blocks) {
  std::ranges::sort(blocks);
  return blocks.size() - std::ranges::unique(blocks).size();
}

TEST(FootprintMeterTest, EqualsASetOfBlocks) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 20; ++round) {
    FootprintMeter footprint;
    std::vector<std::pair<uint32_t, uint64_t>> any, read, written;
    for (int i = 0; i < 500; ++i) {
      const uint32_t device = static_cast<uint32_t>(random() % 3);
      const uint64_t offset = random() % (uint64_t{1} << 36) / (i % 2 == 0 ? 1 : 65'536);
      const uint64_t bytes = random() % 2'000'000;
      const bool write = random() % 2 == 0;
      footprint.Add(device, offset, bytes, write);
      if (bytes == 0) continue;
      for (uint64_t block = offset / 4096; block <= (offset + bytes - 1) / 4096; ++block) {
        any.emplace_back(device, block);
        (write ? written : read).emplace_back(device, block);
      }
    }
    const FootprintMeter::Sizes sizes = footprint.Measure();
    EXPECT_TRUE(sizes.exact);
    EXPECT_EQ(sizes.bytes, Distinct(std::move(any)) * 4096);
    EXPECT_EQ(sizes.read_bytes, Distinct(std::move(read)) * 4096);
    EXPECT_EQ(sizes.write_bytes, Distinct(std::move(written)) * 4096);
  }
}

TEST(FootprintMeterTest, BeyondItsBoundItEstimatesAndSaysSo) {
  FootprintMeter footprint(/*max_chunks=*/1000);
  constexpr uint64_t kBlocks = 300'000;
  for (uint64_t i = 0; i < kBlocks; ++i) {
    const uint64_t offset = i * 7 * 4096;
    footprint.Add(0, offset, 4096, /*write=*/i % 4 == 0);
    if (i % 5 == 0) footprint.Add(0, offset, 4096, false);
  }
  const FootprintMeter::Sizes sizes = footprint.Measure();
  EXPECT_FALSE(sizes.exact);
  const double tolerance = 5 * DistinctCounter::kStandardError;
  const double blocks = kBlocks;
  EXPECT_NEAR(static_cast<double>(sizes.bytes) / 4096 / blocks, 1.0, tolerance);
  EXPECT_NEAR(static_cast<double>(sizes.write_bytes) / 4096 / (blocks / 4), 1.0, tolerance);
  // Read: the three quarters that were not written, and a fifth of the written quarter.
  EXPECT_NEAR(static_cast<double>(sizes.read_bytes) / 4096 / (blocks * 0.8), 1.0, tolerance);
}

TEST(FootprintMeterTest, AnAbsurdRequestIsCutShortAndHarmless) {
  FootprintMeter footprint;
  footprint.Add(~0u, ~uint64_t{0} - 100, ~uint64_t{0}, true);
  footprint.Add(7, 0, ~uint64_t{0}, true);
  EXPECT_LE(footprint.Measure().bytes, FootprintMeter::kLongestBytes + 4096);
}

TEST(DistinctCounterTest, StaysWithinAFewStandardErrorsAtEveryMagnitude) {
  for (const uint64_t distinct : {1, 100, 10'000, 200'000, 1'000'000, 5'000'000}) {
    DistinctCounter counter;
    for (uint64_t i = 0; i < distinct; ++i) counter.Add(i * 8);
    EXPECT_NEAR(counter.Estimate() / static_cast<double>(distinct), 1.0,
                4 * DistinctCounter::kStandardError)
        << distinct;
  }
}

TEST(DistinctCounterTest, SeeingAKeyAgainChangesNothing) {
  DistinctCounter counter;
  for (int round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < 1000; ++i) counter.Add(i);
  }
  DistinctCounter once;
  for (uint64_t i = 0; i < 1000; ++i) once.Add(i);
  EXPECT_EQ(counter.Estimate(), once.Estimate());
}

}  // namespace
}  // namespace blktape
