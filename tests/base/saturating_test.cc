#include "base/saturating.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace blktape {
namespace {

TEST(SaturatingTest, WhatFitsIsExact) {
  EXPECT_EQ(SaturatingAdd<int64_t>(INT64_MAX - 1, 1), INT64_MAX);
  EXPECT_EQ(SaturatingSubtract<int64_t>(-1, INT64_MAX), INT64_MIN);
  EXPECT_EQ(SaturatingSubtract<int64_t>(5, 7), -2);
  EXPECT_EQ(SaturatingAdd<uint64_t>(3, 4), 7u);
}

TEST(SaturatingTest, WhatDoesNotFitEndsAtTheBoundItPassed) {
  EXPECT_EQ(SaturatingAdd<int64_t>(INT64_MAX, 1), INT64_MAX);
  EXPECT_EQ(SaturatingAdd<int64_t>(INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(SaturatingSubtract<int64_t>(INT64_MAX, -1), INT64_MAX);
  EXPECT_EQ(SaturatingSubtract<int64_t>(INT64_MIN, 1), INT64_MIN);
  EXPECT_EQ(SaturatingAdd<uint64_t>(UINT64_MAX, 2), UINT64_MAX);
  EXPECT_EQ(SaturatingSubtract<uint64_t>(1, 2), 0u);
}

}  // namespace
}  // namespace blktape
