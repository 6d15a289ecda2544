#include "host/stolen_time.h"

#include <gtest/gtest.h>

namespace blktape {
namespace {

TEST(StolenTimeTest, IsTheEighthFigureInTicks) {
  const char stat[] =
      "cpu  96183 82217 78008 391402 5805 0 11191 1337 70 80\n"
      "cpu0 1 2 3 4 5 6 7 8 9 10\n"
      "intr 5 6\n";
  EXPECT_EQ(ParseStolenNs(stat, 100), 13'370'000'000);
  EXPECT_EQ(ParseStolenNs(stat, 1000), 1'337'000'000);
}

TEST(StolenTimeTest, MayBeTheLastFigureOfTheText) {
  EXPECT_EQ(ParseStolenNs("cpu  1 2 3 4 5 6 7 8", 100), 80'000'000);
  EXPECT_EQ(ParseStolenNs("cpu  1 2 3 4 5 6 7 0\n", 100), 0);
}

TEST(StolenTimeTest, IsAbsentWhereTheKernelTellsNone) {
  EXPECT_EQ(ParseStolenNs("", 100), std::nullopt);
  // Seven figures, as before Linux 2.6.11; those of the next line are another CPU's.
  EXPECT_EQ(ParseStolenNs("cpu  1 2 3 4 5 6 7\ncpu0 1 2 3 4 5 6 7 8\n", 100), std::nullopt);
  EXPECT_EQ(ParseStolenNs("cpu0 1 2 3 4 5 6 7 8\n", 100), std::nullopt);
  EXPECT_EQ(ParseStolenNs("cpu  1 2 3 4 5 6 7 x\n", 100), std::nullopt);
  EXPECT_EQ(ParseStolenNs("cpu  1 2 3 4 5 6 7 8x\n", 100), std::nullopt);
  EXPECT_EQ(ParseStolenNs("cpu  1 2 3 4 5 6 7 -8\n", 100), std::nullopt);
  // Beyond 292 years.
  EXPECT_EQ(ParseStolenNs("cpu  1 2 3 4 5 6 7 9223372036854775807\n", 100), std::nullopt);
  EXPECT_EQ(ParseStolenNs("cpu  1 2 3 4 5 6 7 92233720368547758080\n", 100), std::nullopt);
}

}  // namespace
}  // namespace blktape
