#include "report/page.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace blktape {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kHostile[] = "</script><b>&\"'";

Page SmallPage() {
  Page page{.title = kHostile, .subtitle = kHostile, .footer = kHostile};
  page.verdict.push_back({{{"A is "}, {kHostile, true, true}}});
  page.tables.push_back(
      {"drives",
       "Drives",
       {{"name", "name", Unit::kText, {std::string(kHostile), std::string("a,b\nc")}},
        {"score", "score", Unit::kNumber, {1.5, Cell()}},
        {"bytes", "bytes", Unit::kBytes, {uint64_t{4096}, int64_t{1536}}}}});
  Section section{"score", "Score", {}};
  section.parts.push_back(
      Figure{.id = "bars",
             .title = kHostile,
             .subtitle = kHostile,
             .alt = kHostile,
             .table = "drives",
             .chart = {.x = "name", .panels = {{"score", Unit::kNumber}}, .series = {{"score"}}}});
  section.parts.push_back(Checklist{
      .caption = kHostile,
      .subjects = {"A", "B"},
      .rows = {
          {kHostile, {{Checklist::State::kGood, "yes"}, {Checklist::State::kBad, kHostile}}}}});
  page.sections.push_back(std::move(section));
  return page;
}

TEST(PageTest, NoTextIsMarkup) {
  const std::string html = PageHtml(SmallPage());
  EXPECT_THAT(html, Not(HasSubstr(kHostile)));
  EXPECT_THAT(html, Not(HasSubstr("</script><b>")));
  EXPECT_THAT(html, HasSubstr("&lt;/script&gt;&lt;b&gt;&amp;&quot;&#39;"));
  EXPECT_THAT(html, HasSubstr("\\u003c/script>"));  // in the data
}

TEST(PageTest, OnlyItsOwnScriptsMayRunAndNothingIsFetched) {
  const std::string html = PageHtml(SmallPage());
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  EXPECT_THAT(html, HasSubstr("script-src 'sha256-"));
  const std::string policy = html.substr(
      html.find("script-src"), html.find("\">", html.find("script-src")) - html.find("script-src"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
}

TEST(PageTest, AChecklistSaysGoodAndBadInWordsToo) {
  const std::string html = PageHtml(SmallPage());
  EXPECT_THAT(html, HasSubstr("aria-label=\"good\""));
  EXPECT_THAT(html, HasSubstr("aria-label=\"not good\""));
}

TEST(PageTest, CsvIsTheTable) {
  const auto files = PageCsv(SmallPage());
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].first, "drives.csv");
  EXPECT_EQ(files[0].second,
            "name,score,bytes\n"
            "\"</script><b>&\"\"'\",1.5,4096\n"
            "\"a,b\nc\",,1536\n");
}

TEST(SeriesOfTest, SubjectsLookDifferent) {
  std::set<std::tuple<int, Chart::Style, int>> looks;
  std::set<std::pair<int, Chart::Style>> without_symbol;
  for (size_t i = 0; i < 24; ++i) {
    const Chart::Series series = SeriesOf(i, "score");
    looks.emplace(series.colour % kColours, series.style, series.symbol);
    if (i < 12) without_symbol.emplace(series.colour % kColours, series.style);
  }
  EXPECT_EQ(looks.size(), 24u);
  EXPECT_EQ(without_symbol.size(), 12u);
}

TEST(CellTextTest, IsWrittenByUnit) {
  EXPECT_EQ(CellText(41.5, Unit::kCelsius), "41.5 °C");
  EXPECT_EQ(CellText(2.0, Unit::kOneIn), "p50");
  EXPECT_EQ(CellText(1'000.0, Unit::kOneIn), "p99.9");
  EXPECT_EQ(CellText(1e6 / (1e6 - 999'800), Unit::kOneIn), "p99.98");
  EXPECT_EQ(CellText(Cell(), Unit::kCount), "");
  EXPECT_EQ(CellText(uint64_t{1'234'567}, Unit::kCount), "1,234,567");
  EXPECT_EQ(CellText(0.652, Unit::kShare), "65.2 %");
  EXPECT_EQ(CellText(uint64_t{4096}, Unit::kBytes), "4 KiB");
  EXPECT_EQ(CellText(int64_t{56'100}, Unit::kDurationNs), "56.1 us");
  EXPECT_EQ(CellText(1234.4, Unit::kPerSecond), "1,234 /s");
  EXPECT_EQ(CellText(2.374, Unit::kNumber), "2.37");
  EXPECT_EQ(CellText(-1234.0, Unit::kNumber), "-1,234");
}

}  // namespace
}  // namespace blktape
