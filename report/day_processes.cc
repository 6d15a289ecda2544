#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "analysis/details.h"
#include "analysis/latency_histogram.h"
#include "analysis/profile.h"
#include "base/quantity.h"
#include "report/day_sections.h"
#include "report/page.h"
#include "report/table_maker.h"

namespace blktape {

void AddProcesses(DayPageMaker& day) {
  const bool named = std::any_of(day.profile.processes.begin(), day.profile.processes.end(),
                                 [](const auto& row) { return !row.name.empty(); });
  if (!named && day.profile.devices.size() < 2) return;
  Section& section = day.NewSection("who", "Who did it");
  const auto name_of = [](const std::string& name) {
    return name.empty() ? std::string("(not told)") : name;
  };
  constexpr size_t kDrawn = 12;
  constexpr size_t kShown = 50;
  if (named) {
    TableMaker table("processes", "Processes, most bytes first");
    table.Column("process", "process", Unit::kText)
        .Column("reads", "reads", Unit::kCount)
        .Column("writes", "writes", Unit::kCount)
        .Column("others", "others", Unit::kCount)
        .Column("read_bytes", "read", Unit::kBytes)
        .Column("write_bytes", "written", Unit::kBytes);
    for (const Profile::ProcessRow& row : day.profile.processes) {
      table.Row({name_of(row.name), row.reads.ios, row.writes.ios, row.other.ios, row.reads.bytes,
                 row.writes.bytes});
    }
    table.MostShown(kShown);
    day.Add(std::move(table));
    const size_t drawn = std::min(kDrawn, day.profile.processes.size());
    section.parts.push_back(
        Figure{.id = "processes",
               .title = "Bytes by process",
               .subtitle =
                   day.profile.processes.size() > drawn
                       ? fmt::format("the {} with most bytes of {}; who queued the I/O, which for "
                                     "buffered writes is the kernel's own writer",
                                     drawn, FormatCount(day.profile.processes.size()))
                       : "who queued the I/O, which for buffered writes is the kernel's own writer",
               .alt = fmt::format("Processes: {}.", FormatCount(day.profile.processes.size())),
               .table = "processes",
               .chart = {.kind = Chart::Kind::kBars,
                         .x = "process",
                         .panels = {{"bytes", Unit::kBytes}},
                         .series = {{"read_bytes", Chart::Style::kLine, 0},
                                    {"write_bytes", Chart::Style::kLine, 1}},
                         .stacked = true,
                         .horizontal = true,
                         .rows = kDrawn,
                         .height = static_cast<int>(60 + 26 * drawn)},
               .wide = true});
    TableMaker waits("process_latency",
                     "Reads and writes by process: how long each took, at most 6.25 % off");
    waits.Column("process", "process", Unit::kText)
        .Column("ios", "I/Os", Unit::kCount)
        .Column("d2c_mean_ns", "mean D2C", Unit::kDurationNs)
        .Column("d2c_p50_ns", "median D2C", Unit::kDurationNs)
        .Column("d2c_p99_ns", "p99 D2C", Unit::kDurationNs)
        .Column("q2c_p50_ns", "median Q2C", Unit::kDurationNs)
        .Column("q2c_p99_ns", "p99 Q2C", Unit::kDurationNs)
        .Column("q2c_max_ns", "longest Q2C", Unit::kDurationNs);
    for (const Details::NamedRow& row : day.details.by_process) {
      const Details::LatencyParts& parts = row.all;
      waits.Row({name_of(row.name), parts.d2c.count(), CellOf(parts.d2c.mean_ns()),
                 CellOf(parts.d2c.PercentileNs(kP50)), CellOf(parts.d2c.PercentileNs(kP99)),
                 CellOf(parts.q2c.PercentileNs(kP50)), CellOf(parts.q2c.PercentileNs(kP99)),
                 CellOf(parts.q2c.max_ns())});
    }
    waits.MostShown(15);
    day.Add(std::move(waits));
    section.parts.push_back(TableView{"process_latency"});
  }
  if (day.profile.devices.size() > 1) {
    TableMaker table("devices", "Devices");
    table.Column("device", "device", Unit::kText)
        .Column("reads", "reads", Unit::kCount)
        .Column("writes", "writes", Unit::kCount)
        .Column("read_bytes", "read", Unit::kBytes)
        .Column("write_bytes", "written", Unit::kBytes)
        .Column("d2c_p50_ns", "median D2C", Unit::kDurationNs)
        .Column("d2c_p99_ns", "p99 D2C", Unit::kDurationNs);
    for (const Profile::DeviceRow& row : day.profile.devices) {
      table.Row({row.name, row.reads.ios, row.writes.ios, row.reads.bytes, row.writes.bytes,
                 CellOf(row.d2c.MeaningfulPercentileNs(kP50)),
                 CellOf(row.d2c.MeaningfulPercentileNs(kP99))});
    }
    table.MostShown(kShown);
    day.Add(std::move(table));
    section.parts.push_back(TableView{"devices"});
  }
}

}  // namespace blktape
