#include "report/text_table.h"

#include <string>

#include "gtest/gtest.h"

namespace blktape {
namespace {

TextTable Small() {
  TextTable table({{"name", true}, {"much"}, {"less", false, 2}});
  table.Row({"a", "1", "22"}, 10);
  table.Row({"a long name", "333", "4"}, 5);
  return table;
}

TEST(TextTableTest, AlignsAndDrawsBarsInTheRoomLeft) {
  EXPECT_EQ(Small().Text({.columns = 40}),
            "  name         much  less\n"
            "  a               1    22  #############\n"
            "  a long name   333     4  ######\n");
}

TEST(TextTableTest, ColumnsOfLittleWorthGoFirstThenNamesAreCut) {
  EXPECT_EQ(Small().Text({.columns = 20}),
            "  name         much\n"
            "  a               1\n"
            "  a long name   333\n");
  EXPECT_EQ(Small().Text({.columns = 17}),
            "  name       much\n"
            "  a             1\n"
            "  a long ..   333\n");
}

TEST(TextTableTest, NothingIsNoTable) { EXPECT_EQ(TextTable({{"name"}}).Text({}), ""); }

TEST(SparklineTest, ShowsWhatIsNotZeroHoweverSmall) {
  const TextLook look{.unicode = true};
  EXPECT_EQ(Sparkline({0, 1, 400, 800}, look), " ▁▄█");
  EXPECT_EQ(Sparkline({0, 0}, look), "  ");
  EXPECT_EQ(Sparkline({1, 2}, {}), "");
}

}  // namespace
}  // namespace blktape
