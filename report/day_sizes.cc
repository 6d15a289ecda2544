#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "analysis/size_histogram.h"
#include "base/quantity.h"
#include "report/day_sections.h"
#include "report/page.h"
#include "report/table_maker.h"

namespace blktape {

void AddSizes(DayPageMaker& day) {
  std::map<uint64_t, std::array<uint64_t, 4>> rows;
  const auto gather = [&](const SizeHistogram& sizes, size_t column) {
    for (const SizeHistogram::Row& row : sizes.PowersOfTwo()) rows[row.bytes][column] += row.count;
  };
  gather(day.profile.queued_read_sizes, 0);
  gather(day.profile.queued_write_sizes, 1);
  gather(day.profile.read_sizes, 2);
  gather(day.profile.write_sizes, 3);
  if (rows.empty()) return;
  const bool asked = day.profile.has_queued_sizes;
  TableMaker table("sizes", "Sizes by power of two: each row counts what is above half of it");
  table.Column("to_bytes", "up to", Unit::kBytes);
  if (asked)
    table.Column("asked_reads", "reads asked", Unit::kCount)
        .Column("asked_writes", "writes asked", Unit::kCount);
  table.Column("issued_reads", asked ? "reads issued" : "reads", Unit::kCount)
      .Column("issued_writes", asked ? "writes issued" : "writes", Unit::kCount);
  // All powers between, so that the axis is one.
  for (uint64_t bytes = rows.begin()->first; bytes < rows.rbegin()->first && bytes != 0; bytes *= 2)
    rows[bytes];
  for (const auto& [bytes, counts] : rows) {
    if (asked) {
      table.Row({bytes, counts[0], counts[1], counts[2], counts[3]});
    } else {
      table.Row({bytes, counts[2], counts[3]});
    }
  }
  day.Add(std::move(table));
  Section& section = day.NewSection("sizes", "Sizes");
  const auto figure = [&](std::string id, std::string title, std::string subtitle,
                          const std::string& prefix, const SizeHistogram& reads,
                          const SizeHistogram& writes, bool wide) {
    const uint64_t count = reads.count() + writes.count();
    const double small = Share(reads.CountOf(4096) + writes.CountOf(4096), count);
    section.parts.push_back(Figure{
        .id = std::move(id),
        .title = std::move(title),
        .subtitle =
            std::move(subtitle) +
            fmt::format("; exactly 4 KiB: {} of {}, of reads {}, of writes {}", Percent(small),
                        FormatCount(count), Percent(Share(reads.CountOf(4096), reads.count())),
                        Percent(Share(writes.CountOf(4096), writes.count()))),
        .alt = fmt::format("{} of {} are exactly 4 KiB.", Percent(small), FormatCount(count)),
        .table = "sizes",
        .chart = {.kind = Chart::Kind::kBars,
                  .x = "to_bytes",
                  .panels = {{"I/Os", Unit::kCount}},
                  .series = {{prefix + "_reads", Chart::Style::kLine, 0},
                             {prefix + "_writes", Chart::Style::kLine, 1}},
                  .stacked = true},
        .wide = wide});
  };
  if (asked) {
    figure("sizes_asked", "Size as software asked", "before the block layer merged and split",
           "asked", day.profile.queued_read_sizes, day.profile.queued_write_sizes, false);
  }
  figure("sizes_issued", "Size as the drive got it", "requests at the drive", "issued",
         day.profile.read_sizes, day.profile.write_sizes, !asked);
}

}  // namespace blktape
