#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "analysis/in_flight.h"
#include "analysis/profile.h"
#include "base/quantity.h"
#include "report/day_sections.h"
#include "report/page.h"
#include "report/table_maker.h"

namespace blktape {
namespace {

void IdleFigure(DayPageMaker& day, Section* section) {
  if (!day.KnowsService()) return;
  static constexpr std::array kNames = {
      "below 1 us",   "1 to 10 us", "10 to 100 us", "100 us to 1 ms", "1 to 10 ms",
      "10 to 100 ms", "0.1 to 1 s", "1 to 10 s",    "10 to 100 s",    "over 100 s"};
  static_assert(kNames.size() == Profile::kIdleClasses);
  TableMaker table("idle_gaps", "Stretches in which the drive had nothing to do");
  table.Column("length", "length", Unit::kText)
      .Column("gaps", "gaps", Unit::kCount)
      .Column("total_ns", "in all", Unit::kDurationNs)
      .Column("share", "share of all time", Unit::kShare);
  for (size_t i = 0; i < kNames.size(); ++i) {
    const Profile::IdleClass& idle = day.profile.idle[i];
    table.Row(
        {std::string(kNames[i]), idle.count, idle.total_ns,
         Share(static_cast<double>(idle.total_ns), static_cast<double>(day.profile.observed_ns))});
  }
  day.Add(std::move(table));
  section->parts.push_back(Figure{
      .id = "idle_gaps",
      .title = "Idle time by length of the gap",
      .subtitle = fmt::format("busy {} ({}), idle {}", FormatDurationNs(day.profile.busy_ns),
                              Percent(Share(static_cast<double>(day.profile.busy_ns),
                                            static_cast<double>(day.profile.observed_ns))),
                              FormatDurationNs(day.profile.idle_ns)),
      .alt = fmt::format("The drive was idle for {}.", FormatDurationNs(day.profile.idle_ns)),
      .table = "idle_gaps",
      .chart = {.kind = Chart::Kind::kBars,
                .x = "length",
                .panels = {{"share of all time", Unit::kShare}},
                .series = {{"share", Chart::Style::kLine, 0}},
                .horizontal = true,
                .height = 300}});
  TableMaker caps("idle_caps", "What --idle-cap would cut of a replay's time");
  caps.Column("cap_ns", "idle time cut to", Unit::kDurationNs)
      .Column("cut_ns", "cut", Unit::kDurationNs)
      .Column("share", "share of all time", Unit::kShare);
  for (const Profile::IdleCap& cap : day.profile.idle_caps) {
    caps.Row(
        {cap.cap_ns, cap.cut_ns,
         Share(static_cast<double>(cap.cut_ns), static_cast<double>(day.profile.observed_ns))});
  }
  day.Add(std::move(caps));
  section->parts.push_back(TableView{"idle_caps"});
}

}  // namespace

void AddDepth(DayPageMaker& day) {
  if (day.profile.depth.max == 0) return;
  uint64_t issued = 0;
  int64_t time_ns = 0;
  size_t last = 0;
  for (size_t k = 0; k < day.profile.depth.classes.size(); ++k) {
    const InFlight::Class& one = day.profile.depth.classes[k];
    issued += one.issued;
    time_ns += one.time_ns;
    if (one.issued > 0 || one.time_ns > 0) last = k;
  }
  TableMaker table("queue_depth", "Reads and writes in flight");
  table.Column("depth", "in flight", Unit::kText)
      .Column("issued", "issued as the last of so many", Unit::kCount)
      .Column("issued_share", "share of I/Os", Unit::kShare)
      .Column("time_ns", "time at that depth", Unit::kDurationNs)
      .Column("time_share", "share of busy time", Unit::kShare);
  for (size_t k = 0; k <= last; ++k) {
    const InFlight::Class& one = day.profile.depth.classes[k];
    table.Row({ClassName(k), one.issued, Share(one.issued, issued), one.time_ns,
               Share(static_cast<double>(one.time_ns), static_cast<double>(time_ns))});
  }
  day.Add(std::move(table));
  const double alone = Share(day.profile.depth.classes[0].issued, issued);
  Section& section = day.NewSection("depth", "How many at once, and how often nothing");
  section.parts.push_back(Figure{
      .id = "queue_depth",
      .title = "Queue depth",
      .subtitle =
          fmt::format("reads and writes in flight; max {}, mean {:.2f} while busy, {} overall",
                      FormatCount(day.profile.depth.max), day.profile.depth.mean_busy,
                      CellText(day.profile.depth.mean, Unit::kNumber)),
      .alt = fmt::format("{} of reads and writes were issued with nothing else in flight; "
                         "the most at once were {}.",
                         Percent(alone), FormatCount(day.profile.depth.max)),
      .table = "queue_depth",
      .chart = {.kind = Chart::Kind::kBars,
                .x = "depth",
                .panels = {{"share", Unit::kShare}},
                .series = {{"issued_share", Chart::Style::kLine, 2},
                           {"time_share", Chart::Style::kLine, 5}}}});
  IdleFigure(day, &section);
}

}  // namespace blktape
