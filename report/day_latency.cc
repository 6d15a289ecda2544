#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/details.h"
#include "analysis/latency_histogram.h"
#include "analysis/latency_sketch.h"
#include "analysis/profile.h"
#include "base/quantity.h"
#include "format/io_record.h"
#include "report/day_sections.h"
#include "report/page.h"
#include "report/table_maker.h"

namespace blktape {
namespace {

void LatencyBySize(DayPageMaker& day, Section* section) {
  if (day.details.by_size.empty()) return;
  TableMaker table("latency_by_size",
                   "D2C by size: median, 99th percentile and longest, at most 6.25 % off");
  table.Column("size", "size", Unit::kText);
  for (const char* const op : {"read", "write"}) {
    const std::string of = std::string(op) + "s";
    table.Column(of, of, Unit::kCount)
        .Column(std::string(op) + "_d2c_p50_ns", std::string(op) + " median", Unit::kDurationNs)
        .Column(std::string(op) + "_d2c_p99_ns", std::string(op) + " p99", Unit::kDurationNs)
        .Column(std::string(op) + "_d2c_max_ns", std::string(op) + " longest", Unit::kDurationNs);
  }
  for (const Details::SizeRow& row : day.details.by_size) {
    std::vector<Cell> cells = {row.to_bytes == 0 ? "over " + FormatBytes(1 << 20)
                                                 : "to " + FormatBytes(row.to_bytes)};
    for (const Details::LatencyParts* parts : {&row.reads, &row.writes}) {
      cells.insert(cells.end(),
                   {parts->d2c.count(), CellOf(parts->d2c.PercentileNs(kP50)),
                    CellOf(parts->d2c.PercentileNs(kP99)), CellOf(parts->d2c.max_ns())});
    }
    table.Row(std::move(cells));
  }
  day.Add(std::move(table));
  section->parts.push_back(Figure{
      .id = "latency_by_size",
      .title = "How long by size",
      .subtitle =
          "bar: median D2C; line: to the 99th percentile, where there are 100 I/Os of that size",
      .alt = "Median and 99th percentile of D2C for each size; the table has the figures.",
      .table = "latency_by_size",
      .chart = {.kind = Chart::Kind::kBars,
                .x = "size",
                .panels = {{"D2C, log scale", Unit::kDurationNs, true}},
                .series = {{"read_d2c_p50_ns", Chart::Style::kLine, 0, 0, "read_d2c_p50_ns",
                            "read_d2c_p99_ns"},
                           {"write_d2c_p50_ns", Chart::Style::kLine, 1, 0, "write_d2c_p50_ns",
                            "write_d2c_p99_ns"}},
                .height = 280}});
}

void LatencyTable(DayPageMaker& day, Section* section) {
  TableMaker table("latency", "Latency");
  table.Column("what", "what", Unit::kText)
      .Column("ios", "I/Os", Unit::kCount)
      .Column("mean_ns", "mean", Unit::kDurationNs)
      .Column("p50_ns", "p50", Unit::kDurationNs)
      .Column("p95_ns", "p95", Unit::kDurationNs)
      .Column("p99_ns", "p99", Unit::kDurationNs)
      .Column("p999_ns", "p99.9", Unit::kDurationNs)
      .Column("max_ns", "max", Unit::kDurationNs);
  const auto row = [&table](std::string what, const LatencyHistogram& histogram) {
    if (histogram.count() == 0) return;
    table.Row({std::move(what), histogram.count(), CellOf(histogram.mean_ns()),
               CellOf(histogram.MeaningfulPercentileNs(kP50)),
               CellOf(histogram.MeaningfulPercentileNs(kP95)),
               CellOf(histogram.MeaningfulPercentileNs(kP99)),
               CellOf(histogram.MeaningfulPercentileNs(kP999)), CellOf(histogram.max_ns())});
  };
  const auto rows = [&row](const std::string& of, const Profile::Latencies& latencies) {
    row(of + ": at the drive (D2C)", latencies.d2c);
    row(of + ": before it (Q2D)", latencies.q2d);
    row(of + ": in all (Q2C)", latencies.q2c);
  };
  rows("reads and writes", day.profile.data);
  rows("reads", day.profile.latency_of(Op::kRead));
  rows("writes", day.profile.latency_of(Op::kWrite));
  rows("flushes", day.profile.latency_of(Op::kFlush));
  rows("discards", day.profile.latency_of(Op::kDiscard));
  for (const Details::NamedRow& flag : day.details.by_flag) {
    const LatencySketch& d2c = flag.all.d2c;
    if (d2c.count() == 0) continue;
    table.Row({"flag " + flag.name + ": at the drive (D2C)", d2c.count(), CellOf(d2c.mean_ns()),
               CellOf(d2c.PercentileNs(kP50)), CellOf(d2c.PercentileNs(kP95)),
               CellOf(d2c.PercentileNs(kP99)), CellOf(d2c.PercentileNs(kP999)),
               CellOf(d2c.max_ns())});
  }
  day.Add(std::move(table));
  section->parts.push_back(TableView{"latency"});
}

}  // namespace

void AddLatency(DayPageMaker& day) {
  if (day.profile.all.d2c.count() == 0) return;
  Section& section = day.NewSection("latency", "How fast the drive was");
  std::map<int64_t, std::array<std::optional<double>, 3>> rows;
  const std::array<Op, 3> ops = {Op::kRead, Op::kWrite, Op::kFlush};
  for (size_t i = 0; i < ops.size(); ++i) {
    const auto buckets = day.profile.latency_of(ops[i]).d2c.Rows();
    if (buckets.empty()) continue;
    rows[buckets.front().from_ns][i] = 1.0;
    for (const LatencyHistogram::Row& row : buckets) {
      if (row.share_slower > 0) rows[row.to_ns][i] = row.share_slower;
    }
  }
  TableMaker table("slower_than", "Share of I/Os that took the drive at least so long (D2C)");
  table.Column("d2c_ns", "at least", Unit::kDurationNs)
      .Column("reads", "reads", Unit::kShare)
      .Column("writes", "writes", Unit::kShare)
      .Column("flushes", "flushes", Unit::kShare);
  for (const auto& [ns, shares] : rows)
    table.Row({ns, CellOf(shares[0]), CellOf(shares[1]), CellOf(shares[2])});
  day.Add(std::move(table));
  const LatencyHistogram& d2c = day.profile.data.d2c;
  Chart chart{.kind = Chart::Kind::kLines, .x = "d2c_ns", .x_axis = {"", Unit::kDurationNs, true}};
  chart.panels = {{"share of I/Os, log scale", Unit::kShare, true}};
  chart.series = {{"reads", Chart::Style::kLine, 0}, {"writes", Chart::Style::kDashed, 1}};
  if (day.profile.of(Op::kFlush).ios > 0)
    chart.series.push_back({"flushes", Chart::Style::kDotted, 2});
  chart.height = 280;
  section.parts.push_back(Figure{
      .id = "slower_than",
      .title = "Share of I/Os slower than",
      .subtitle = "D2C: from issue to completion; both scales are logarithmic, a steep line is a "
                  "steady drive",
      .alt = fmt::format("Of reads and writes half took {} or more, one in a hundred {} or more.",
                         CellText(CellOf(d2c.PercentileNs(kP50)), Unit::kDurationNs),
                         CellText(CellOf(d2c.PercentileNs(kP99)), Unit::kDurationNs)),
      .table = "slower_than",
      .chart = std::move(chart)});
  LatencyBySize(day, &section);
  LatencyTable(day, &section);
}

}  // namespace blktape
