#include "analysis/size_histogram.h"

#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace blktape {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Row = SizeHistogram::Row;

TEST(SizeHistogramTest, CountsEachSizeOnItsOwn) {
  SizeHistogram sizes;
  sizes.Add(4096);
  sizes.Add(512);
  sizes.Add(4096);
  sizes.Add(44'167'680);
  sizes.Add(700, 3);  // no whole number of sectors, as some foreign traces have
  EXPECT_THAT(sizes.Exact(),
              ElementsAre(Row{512, 1}, Row{700, 3}, Row{4096, 2}, Row{44'167'680, 1}));
  EXPECT_EQ(sizes.count(), 7u);
  EXPECT_EQ(sizes.CountOf(4096), 2u);
  EXPECT_EQ(sizes.CountOf(700), 3u);
  EXPECT_EQ(sizes.CountOf(8192), 0u);
}

TEST(SizeHistogramTest, APowerOfTwoRowReachesUpToItsSize) {
  SizeHistogram sizes;
  sizes.Add(4096);
  sizes.Add(4097);
  sizes.Add(8192);
  sizes.Add(32'768);
  EXPECT_THAT(sizes.PowersOfTwo(),
              ElementsAre(Row{4096, 1}, Row{8192, 2}, Row{16'384, 0}, Row{32'768, 1}));
}

TEST(SizeHistogramTest, NothingGivesNoRows) {
  EXPECT_THAT(SizeHistogram().Exact(), IsEmpty());
  EXPECT_THAT(SizeHistogram().PowersOfTwo(), IsEmpty());
}

TEST(SizeHistogramTest, SizesBeyondItsBoundAreCountedAsOther) {
  SizeHistogram sizes;
  constexpr uint64_t kTooMany = 70'000;
  for (uint64_t i = 0; i < kTooMany; ++i) sizes.Add(4 * 1024 * 1024 + 1 + i);
  EXPECT_EQ(sizes.count(), kTooMany);
  EXPECT_EQ(sizes.Exact().size() + sizes.other(), kTooMany);
  EXPECT_GT(sizes.other(), 0u);
  EXPECT_THAT(sizes.PowersOfTwo(), ElementsAre(Row{8 * 1024 * 1024, kTooMany}));
}

TEST(SizeHistogramTest, TheLargestNumberHasARow) {
  SizeHistogram sizes;
  sizes.Add(~uint64_t{0});
  EXPECT_THAT(sizes.PowersOfTwo(), ElementsAre(Row{~uint64_t{0}, 1}));
}

}  // namespace
}  // namespace blktape
