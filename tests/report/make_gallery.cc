// Writes a page with a figure of each kind and style, of invented drives: make_gallery PATH. What
// the bench's report is made of is drawn and tested by it.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "report/page.h"

namespace blktape {
namespace {

Page Gallery() {
  Page page{.title = "Three drives", .subtitle = "invented figures"};
  page.verdict.push_back(
      {{{"A", true, true}, {" is "}, {"1.42 times", true}, {" (1.36 to 1.49) as fast as B."}}});
  page.verdict.push_back({{{"One run is not valid."}}, /*bad=*/true});
  page.tables.push_back(
      {"score",
       "Score",
       {{"drive", "drive", Unit::kText, {"A", "B", "C"}},
        {"score", "score", Unit::kNumber, {2130.0, 1500.0, 2105.0}},
        {"low", "from", Unit::kNumber, {2080.0, 1460.0, 2040.0}},
        {"high", "to", Unit::kNumber, {2180.0, 1540.0, 2172.0}},
        {"small_ns", "small reads", Unit::kDurationNs, {62e9, 71e9, 60e9}},
        {"saves_ns", "saves", Unit::kDurationNs, {35e9, 72e9, Cell()}},
        {"valid",
         "valid",
         Unit::kText,
         {std::string("yes"), std::string("yes"), std::string("no")}},
        {"note", "note", Unit::kText, {std::string("place 1"), std::string("place 2"), Cell()}}}});
  DataTable sweep{"sweep",
                  "IOPS by queue depth",
                  {{"depth", "depth", Unit::kCount, {}},
                   {"a", "A", Unit::kPerSecond, {}},
                   {"a_low", "A from", Unit::kPerSecond, {}},
                   {"a_high", "A to", Unit::kPerSecond, {}},
                   {"b", "B", Unit::kPerSecond, {}},
                   {"c", "C", Unit::kPerSecond, {}},
                   {"celsius", "temperature", Unit::kNumber, {}}}};
  for (int depth = 1; depth <= 128; depth *= 2) {
    const double iops = 10'000 * std::sqrt(depth);
    sweep.columns[0].cells.emplace_back(int64_t{depth});
    for (int i = 1; i < 6; ++i)
      sweep.columns[static_cast<size_t>(i)].cells.emplace_back(iops * (1 + 0.1 * (i % 3)));
    sweep.columns[6].cells.emplace_back(40.0 + depth / 10.0);
  }
  page.tables.push_back(std::move(sweep));
  Section section{"gallery", "Gallery", {}};
  section.parts.push_back(Paragraph{"Each kind of figure once."});
  section.parts.push_back(
      Figure{.id = "score",
             .title = "Score",
             .subtitle = "bars are 95 % intervals",
             .alt = "A 2130, B 1500, C 2105",
             .table = "score",
             .chart = {.x = "drive",
                       .panels = {{"score", Unit::kNumber}},
                       .series = {{"score", Chart::Style::kLine, 0, 0, "low", "high"}},
                       .horizontal = true,
                       .colour_by_row = true,
                       .height = 180}});
  section.parts.push_back(Figure{.id = "wait",
                                 .title = "Waiting for storage",
                                 .subtitle = "by what was waited for",
                                 .alt = "A waits least for saves",
                                 .table = "score",
                                 .chart = {.x = "drive",
                                           .panels = {{"wait", Unit::kDurationNs}},
                                           .series = {{"small_ns", Chart::Style::kLine, 0},
                                                      {"saves_ns", Chart::Style::kLine, 1}},
                                           .stacked = true,
                                           .horizontal = true,
                                           .height = 180}});
  section.parts.push_back(
      Figure{.id = "sweep",
             .title = "IOPS by queue depth",
             .subtitle = "with intervals and an event",
             .alt = "IOPS rise with the depth",
             .table = "sweep",
             .chart = {.kind = Chart::Kind::kLines,
                       .x = "depth",
                       .x_axis = {"queue depth", Unit::kCount, true},
                       .panels = {{"IOPS", Unit::kPerSecond}, {"temperature", Unit::kNumber}},
                       .series = {{"a", Chart::Style::kLine, 0, 0, "a_low", "a_high"},
                                  {"b", Chart::Style::kDashed, 1, 0},
                                  {"c", Chart::Style::kDotted, 2, 0},
                                  {"celsius", Chart::Style::kStep, 3, 1}},
                       .marks = {{10, 10, "a moment"}, {20, 40, "a stretch"}}},
             .wide = true});
  Chart shown{.x = "drive",
              .panels = {{"score", Unit::kNumber}},
              .series = {{"score", Chart::Style::kLine, 0, 0, "low", "high"}},
              .horizontal = true,
              .colour_by_row = true,
              .row_colours = {1, 7, 2},
              .valid = "valid",
              .values = true,
              .note = "note",
              .marks = {{1000, 1000, "reference"}},
              .height = 180};
  section.parts.push_back(Figure{.id = "told",
                                 .title = "Bars that say their value",
                                 .subtitle = "a colour beyond the palette, an invalid row",
                                 .alt = "A 2130, B 1500, C invalid",
                                 .table = "score",
                                 .chart = std::move(shown)});
  Chart cut{
      .kind = Chart::Kind::kLines,
      .x = "depth",
      .x_axis = {"percentile", Unit::kOneIn, true},
      .panels = {{"close", Unit::kNumber, true, true}, {"celsius", Unit::kCelsius, false, true}},
      .x_end = 200};
  for (const size_t part : {size_t{0}, size_t{4}}) {
    Chart::Series series = SeriesOf(part + 3, part == 0 ? "a" : "celsius");
    series.first_row = part;
    series.end_row = part + 4;
    series.panel = part / 4;
    series.label = "rows from " + std::to_string(part);
    series.step = true;
    cut.series.push_back(std::move(series));
  }
  section.parts.push_back(Figure{.id = "cut",
                                 .title = "Lines of some rows",
                                 .subtitle = "steps, dashes and dots, close axes",
                                 .alt = "two lines over percentiles",
                                 .table = "sweep",
                                 .chart = std::move(cut)});
  section.parts.push_back(Checklist{.caption = "Validity",
                                    .subjects = {"A", "B", "C"},
                                    .rows = {{"lateness below 100 us",
                                              {{Checklist::State::kGood, "31 us"},
                                               {Checklist::State::kBad, "212 us"},
                                               {Checklist::State::kNone, "not measured"}}}}});
  section.parts.push_back(TableView{"score"});
  page.sections.push_back(std::move(section));
  return page;
}

}  // namespace
}  // namespace blktape

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::ofstream file(argv[1]);
  file << blktape::PageHtml(blktape::Gallery());
  return file.good() ? 0 : 1;
}
