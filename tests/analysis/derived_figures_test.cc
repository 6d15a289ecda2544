#include "analysis/derived_figures.h"

#include <optional>

#include "analysis/profile.h"
#include "base/units.h"
#include "format/trace.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/analysis/small_profile.h"

namespace blktape {
namespace {

using ::testing::DoubleNear;
using ::testing::Optional;

TEST(DerivedFiguresTest, AreTheFormulasOfTheirMakers) {
  DerivedFigures derived;
  EXPECT_EQ(derived.data_rate_mb_s(), std::nullopt);
  EXPECT_EQ(derived.pcmark_form(), std::nullopt);
  EXPECT_EQ(derived.max_iops(), std::nullopt);
  const Profile profile = SmallProfile();
  derived.AddTimed(profile);
  proto::ReplayOutcome outcome;
  outcome.set_wall_ns(10 * kNanosPerMilli);
  derived.AddMax(profile, outcome);
  // 70 * 4096 + 30 * 131072 = 4,218,880 B in 5 ms of busy time, then in 10 ms of wall time.
  EXPECT_THAT(derived.data_rate_mb_s(), Optional(DoubleNear(843.776, 1e-9)));
  EXPECT_THAT(derived.access_time_us(), Optional(DoubleNear(50, 1e-9)));
  EXPECT_THAT(derived.pcmark_form(), Optional(DoubleNear(129.906, 1e-3)));  // sqrt(843.776 * 20)
  EXPECT_THAT(derived.max_iops(), Optional(DoubleNear(10'000, 1e-9)));
  EXPECT_THAT(derived.max_mb_s(), Optional(DoubleNear(421.888, 1e-9)));
  EXPECT_THAT(derived.mean_transfer_bytes(), Optional(DoubleNear(42'188.8, 1e-9)));
}

}  // namespace
}  // namespace blktape
