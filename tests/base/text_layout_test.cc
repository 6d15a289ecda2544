#include "base/text_layout.h"

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

TEST(ColumnsOfTest, ACharacterIsOneColumnHoweverManyBytes) {
  EXPECT_EQ(ColumnsOf(""), 0u);
  EXPECT_EQ(ColumnsOf("abc"), 3u);
  EXPECT_EQ(ColumnsOf("\xE2\x82\xAC\xC3\xBC"), 2u);
}

TEST(WrappedTest, BreaksAtBlanksWithinTheColumns) {
  EXPECT_EQ(Wrapped("a  ", "   ", "bb cc dd", 8), "a  bb cc\n   dd\n");
  EXPECT_EQ(Wrapped("a  ", "   ", "bb cc dd", 7), "a  bb\n   cc\n   dd\n");
  EXPECT_EQ(Wrapped("a", " ", "", 8), "a\n");
}

TEST(WrappedTest, AWordLongerThanALineStaysWhole) {
  EXPECT_EQ(Wrapped("", "  ", "a 1234567890 b", 6), "a\n  1234567890\n  b\n");
}

TEST(WrappedTest, BlanksInARowStay) {
  EXPECT_EQ(Wrapped("lost  ", "      ", "  bytes 7", 40), "lost    bytes 7\n");
}

TEST(WrappedTest, CountsCharactersAndNotBytes) {
  EXPECT_EQ(Wrapped("", "", "\xC3\xBC\xC3\xBC \xC3\xBC\xC3\xBC x", 5),
            "\xC3\xBC\xC3\xBC \xC3\xBC\xC3\xBC\nx\n");
}

}  // namespace
}  // namespace blktape
