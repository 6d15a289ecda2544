#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "analysis/details.h"
#include "analysis/hours_of_day.h"
#include "analysis/timeline.h"
#include "base/quantity.h"
#include "report/day_sections.h"
#include "report/page.h"
#include "report/table_maker.h"

namespace blktape {
namespace {

std::vector<Chart::Mark> Marks(const DayPageMaker& day) {
  std::vector<Chart::Mark> marks;
  for (const Profile::Event& event : day.profile.events) {
    marks.push_back(
        {static_cast<double>(event.from_ns), static_cast<double>(event.to_ns), event.what});
  }
  return marks;
}

void LatencyMap(DayPageMaker& day, Section* section) {
  const Timeline::LatencyMap& map = day.details.timeline.d2c_map;
  if (map.rows == 0) return;
  TableMaker table("latency_map", "Reads and writes by time and D2C");
  table.Column("from_ns", "from", Unit::kTimeNs)
      .Column("d2c_from_ns", "D2C from", Unit::kDurationNs)
      .Column("d2c_to_ns", "to", Unit::kDurationNs)
      .Column("ios", "I/Os", Unit::kCount);
  for (size_t column = 0; column < map.columns; ++column) {
    for (size_t row = 0; row < map.rows; ++row) {
      const uint64_t count = map.counts[column * map.rows + row];
      if (count == 0) continue;
      table.Row({static_cast<int64_t>(column) * map.column_ns, map.row_from_ns[row],
                 map.row_from_ns[row + 1], count});
    }
  }
  day.Add(std::move(table));
  section->parts.push_back(
      Figure{.id = "latency_map",
             .title = "How long the drive took, over time",
             .subtitle = "reads and writes by D2C; a cell is " + FormatDurationNs(map.column_ns) +
                         " wide and half a power of two high",
             .alt = fmt::format("D2C of all reads and writes lies between {} and {}.",
                                FormatDurationNs(map.row_from_ns.front()),
                                FormatDurationNs(map.row_from_ns.back())),
             .table = "latency_map",
             .chart = {.kind = Chart::Kind::kMap,
                       .x = "from_ns",
                       .x_axis = {"", Unit::kTimeNs},
                       .panels = {{"D2C, log scale", Unit::kDurationNs, true}},
                       .series = {{"ios", Chart::Style::kLine, 2}},
                       .zoom = true,
                       .y = "d2c_from_ns",
                       .y_to = "d2c_to_ns",
                       .value = "ios",
                       .x_step = static_cast<double>(map.column_ns),
                       .height = 300},
             .wide = true});
}

// Where the trace reaches over hours of the day and tells which.
void HoursFigure(DayPageMaker& day, Section* section) {
  const HoursOfDay& hours = day.details.hours;
  const auto any = [](const HoursOfDay::Hour& hour) {
    return hour.reads + hour.writes + hour.others > 0;
  };
  if (std::count_if(hours.hours.begin(), hours.hours.end(), any) < 2) return;
  TableMaker table("hours", "By the hour of the local day, all days together");
  table.Column("hour", "from", Unit::kText)
      .Column("reads", "reads", Unit::kCount)
      .Column("writes", "writes", Unit::kCount)
      .Column("read_bytes", "bytes read", Unit::kBytes)
      .Column("write_bytes", "bytes written", Unit::kBytes);
  size_t fullest = 0;
  const auto data = [&](size_t k) { return hours.hours[k].reads + hours.hours[k].writes; };
  for (size_t k = 0; k < hours.hours.size(); ++k) {
    const HoursOfDay::Hour& hour = hours.hours[k];
    if (data(k) > data(fullest)) fullest = k;
    table.Row(
        {fmt::format("{:02}:00", k), hour.reads, hour.writes, hour.read_bytes, hour.write_bytes});
  }
  day.Add(std::move(table));
  section->parts.push_back(Figure{
      .id = "hours",
      .title = "At what time of day",
      .subtitle = "reads and writes that arrived in each hour of the local day, all days "
                  "together",
      .alt = fmt::format("Most arrived from {:02}:00 on: {}.", fullest, FormatCount(data(fullest))),
      .table = "hours",
      .chart = {.kind = Chart::Kind::kBars,
                .x = "hour",
                .panels = {{"I/Os", Unit::kCount}},
                .series = {{"reads", Chart::Style::kLine, 0}, {"writes", Chart::Style::kLine, 1}},
                .stacked = true},
      .wide = true});
}

}  // namespace

void AddOverTime(DayPageMaker& day) {
  const Timeline& timeline = day.details.timeline;
  TableMaker table("timeline", "Over time, in steps of " + FormatDurationNs(timeline.step_ns));
  table.Column("from_ns", "from", Unit::kTimeNs)
      .Column("reads_per_s", "reads", Unit::kPerSecond)
      .Column("writes_per_s", "writes", Unit::kPerSecond)
      .Column("read_bytes_per_s", "bytes read", Unit::kBytesPerSecond)
      .Column("write_bytes_per_s", "bytes written", Unit::kBytesPerSecond)
      .Column("busy_share", "busy", Unit::kShare)
      .Column("depth_mean", "mean depth", Unit::kNumber)
      .Column("d2c_p50_ns", "median D2C", Unit::kDurationNs)
      .Column("d2c_p99_ns", "p99 D2C", Unit::kDurationNs)
      .Column("d2c_max_ns", "longest D2C", Unit::kDurationNs)
      .Column("share_4k", "share of 4 KiB", Unit::kShare);
  double most = 0;
  int64_t most_at_ns = 0;
  for (size_t i = 0; i < timeline.steps.size(); ++i) {
    const Timeline::Step& step = timeline.steps[i];
    const int64_t from_ns = static_cast<int64_t>(i) * timeline.step_ns;
    if (step.reads_per_s + step.writes_per_s > most) {
      most = step.reads_per_s + step.writes_per_s;
      most_at_ns = from_ns;
    }
    table.Row({from_ns, step.reads_per_s, step.writes_per_s, step.read_bytes_per_s,
               step.write_bytes_per_s, step.busy_share, step.depth_mean, CellOf(step.d2c_p50_ns),
               CellOf(step.d2c_p99_ns), CellOf(step.d2c_max_ns), CellOf(step.share_4k)});
  }
  day.Add(std::move(table));
  Chart chart{.kind = Chart::Kind::kLines, .x = "from_ns", .x_axis = {"", Unit::kTimeNs}};
  chart.panels = {{"I/Os per second", Unit::kPerSecond},
                  {"bytes per second", Unit::kBytesPerSecond}};
  chart.series = {{"reads_per_s", Chart::Style::kArea, 0, 0},
                  {"writes_per_s", Chart::Style::kArea, 1, 0},
                  {"read_bytes_per_s", Chart::Style::kArea, 0, 1},
                  {"write_bytes_per_s", Chart::Style::kArea, 1, 1}};
  if (day.KnowsService()) {
    const size_t load = chart.panels.size();
    chart.panels.push_back({"mean queue depth", Unit::kNumber});
    chart.panels.push_back({"D2C, log scale", Unit::kDurationNs, true});
    chart.series.push_back({"depth_mean", Chart::Style::kArea, 2, load});
    chart.series.push_back({"d2c_p50_ns", Chart::Style::kLine, 2, load + 1});
    chart.series.push_back({"d2c_p99_ns", Chart::Style::kDashed, 3, load + 1});
    chart.series.push_back({"d2c_max_ns", Chart::Style::kPoints, 5, load + 1});
  }
  chart.panels.push_back({"share of 4 KiB", Unit::kShare});
  chart.series.push_back({"share_4k", Chart::Style::kPoints, 4, chart.panels.size() - 1});
  chart.zoom = true;
  chart.marks = Marks(day);
  chart.height = 128;
  Section& section = day.NewSection("time", "Over time");
  section.parts.push_back(Figure{
      .id = "timeline",
      .title = "What happened when",
      .subtitle = "each point is " + FormatDurationNs(timeline.step_ns) +
                  "; D2C: from issue to completion, reads and writes; its p99 where a point has "
                  "100 of them or more",
      .alt = fmt::format(
          "I/Os over {}: the most in one step are {:.0f} per second, {} after the first I/O.",
          FormatDurationNs(day.profile.observed_ns), most, FormatDurationNs(most_at_ns)),
      .table = "timeline",
      .chart = std::move(chart),
      .wide = true});
  LatencyMap(day, &section);
  HoursFigure(day, &section);
  if (!day.profile.events.empty()) {
    TableMaker events("events", "Events and losses with a place in time");
    events.Column("from_ns", "from", Unit::kTimeNs)
        .Column("to_ns", "to", Unit::kTimeNs)
        .Column("what", "what", Unit::kText);
    events.MostShown(20);
    for (const Profile::Event& event : day.profile.events)
      events.Row({event.from_ns, event.to_ns, event.what});
    day.Add(std::move(events));
    section.parts.push_back(TableView{"events"});
  }
}

}  // namespace blktape
