#include "cli/progress_line.h"

#include <gtest/gtest.h>

namespace blktape {
namespace {

TEST(FitColumnsTest, CutsBetweenCharactersNeverWithinOne) {
  EXPECT_EQ(FitColumns("abc", 80), "abc");
  EXPECT_EQ(FitColumns("abc", 2), "ab");
  EXPECT_EQ(FitColumns("a\xC3\xBC"
                       "c",
                       2),
            "a\xC3\xBC");
  EXPECT_EQ(FitColumns("\xE2\x82\xAC\xE2\x82\xAC", 1), "\xE2\x82\xAC");
  EXPECT_EQ(FitColumns("abc", 0), "");
}

}  // namespace
}  // namespace blktape
