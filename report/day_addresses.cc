#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "analysis/address_heat_map.h"
#include "analysis/block_history.h"
#include "analysis/details.h"
#include "analysis/reuse_distance.h"
#include "analysis/working_set.h"
#include "base/quantity.h"
#include "report/day_sections.h"
#include "report/page.h"
#include "report/table_maker.h"

namespace blktape {
namespace {

void SeekFigure(DayPageMaker& day, Section* section) {
  const Details::Seeks& seeks = day.details.d2d;
  if (seeks.count == 0) return;
  TableMaker table("seeks",
                   "From the end of a request to the beginning of the next on the same device, "
                   "in order of issue");
  table.Column("to_bytes", "up to", Unit::kBytes)
      .Column("forward", "forward", Unit::kCount)
      .Column("backward", "backward", Unit::kCount);
  table.Row({uint64_t{0}, seeks.sequential, uint64_t{0}});
  size_t first = 0;
  while (first < Details::Seeks::kClasses && seeks.forward[first] + seeks.backward[first] == 0)
    ++first;
  size_t last = Details::Seeks::kClasses;
  while (last > first && seeks.forward[last - 1] + seeks.backward[last - 1] == 0) --last;
  for (size_t k = first; k < last; ++k) {
    table.Row({k < 64 ? uint64_t{1} << k : UINT64_MAX, seeks.forward[k], seeks.backward[k]});
  }
  day.Add(std::move(table));
  section->parts.push_back(Figure{
      .id = "seeks",
      .title = "How far from one request to the next",
      .subtitle =
          fmt::format("in order of issue; 0 B: it goes on where the one before ended ({}); mean {}",
                      Percent(Share(seeks.sequential, seeks.count)),
                      FormatBytes(static_cast<uint64_t>(seeks.mean_bytes))),
      .alt = fmt::format("{} of {} requests begin where the one before ended.",
                         Percent(Share(seeks.sequential, seeks.count)), FormatCount(seeks.count)),
      .table = "seeks",
      .chart = {
          .kind = Chart::Kind::kBars,
          .x = "to_bytes",
          .panels = {{"requests", Unit::kCount}},
          .series = {{"forward", Chart::Style::kLine, 2}, {"backward", Chart::Style::kLine, 3}},
          .stacked = true}});
}

void BlockFigure(DayPageMaker& day, Section* section) {
  const BlockHistory& blocks = day.details.blocks;
  if (blocks.written_blocks == 0) return;
  TableMaker table("block_writes", "4 KiB blocks by how often they were written");
  table.Column("times", "times written", Unit::kText)
      .Column("blocks", "blocks", Unit::kCount)
      .Column("share", "share of written blocks", Unit::kShare);
  size_t last = BlockHistory::kClasses;
  while (last > 0 && blocks.blocks_by_writes[last - 1] == 0) --last;
  for (size_t k = 0; k < last; ++k) {
    table.Row({ClassName(k), blocks.blocks_by_writes[k],
               Share(blocks.blocks_by_writes[k], blocks.written_blocks)});
  }
  day.Add(std::move(table));
  section->parts.push_back(Figure{
      .id = "block_writes",
      .title = "How often a block was written",
      .subtitle = fmt::format(
          "4 KiB blocks{}; {} of the blocks written replaced what this trace had written before",
          blocks.sampled_share < 1
              ? fmt::format(", of a sample of 1 in {:.0f}", 1 / blocks.sampled_share)
              : "",
          Percent(Share(blocks.overwrites, blocks.block_writes))),
      .alt = fmt::format("{} of the written blocks were written once.",
                         Percent(Share(blocks.blocks_by_writes[0], blocks.written_blocks))),
      .table = "block_writes",
      .chart = {.kind = Chart::Kind::kBars,
                .x = "times",
                .panels = {{"blocks", Unit::kCount}},
                .series = {{"blocks", Chart::Style::kLine, 1}}}});
}

void ReuseFigure(DayPageMaker& day, Section* section) {
  const ReuseDistance& reuse = day.details.reuse_distance;
  size_t classes = reuse.again.size();
  while (classes > 0 && reuse.again[classes - 1] == 0) --classes;
  if (classes == 0) return;
  TableMaker table("reuse",
                   "Touches of 4 KiB blocks by what was touched since the block was touched last");
  table.Column("cache_bytes", "cache of", Unit::kBytes)
      .Column("touches", "found only from this size on", Unit::kCount)
      .Column("hit_share", "found in all", Unit::kShare);
  for (size_t k = 0; k < classes; ++k) {
    table.Row({std::ldexp(ReuseDistanceBuilder::kBlockBytes, static_cast<int>(k)), reuse.again[k],
               reuse.HitShare(k)});
  }
  day.Add(std::move(table));
  section->parts.push_back(Figure{
      .id = "reuse",
      .title = "What a cache would have held",
      .subtitle = fmt::format("share of all touches of a 4 KiB block that find it in a cache of "
                              "this size, which throws "
                              "out what was used longest ago{}",
                              reuse.sampled_share < 1 ? fmt::format("; of a sample of 1 in {:.0f}",
                                                                    1 / reuse.sampled_share)
                                                      : ""),
      .alt = fmt::format("A cache of any size would have held {} of what was touched.",
                         Percent(reuse.HitShare(classes - 1))),
      .table = "reuse",
      .chart = {.kind = Chart::Kind::kLines,
                .x = "cache_bytes",
                .x_axis = {"size of the cache", Unit::kBytes, true},
                .panels = {{"share of touches", Unit::kShare}},
                .series = {{"hit_share", Chart::Style::kArea, 2}}}});
}

void WorkingSetFigure(DayPageMaker& day, Section* section) {
  if (day.details.working_set.windows.front().windows == 0) return;
  TableMaker table("working_set", "Distinct 4 KiB blocks touched in a window");
  table.Column("window_ns", "window", Unit::kDurationNs)
      .Column("mean_bytes", "mean", Unit::kBytes)
      .Column("peak_bytes", "largest", Unit::kBytes)
      .Column("windows", "windows", Unit::kCount);
  for (const WorkingSet::Window& window : day.details.working_set.windows) {
    table.Row({window.window_ns, window.mean_bytes, window.peak_bytes, window.windows});
  }
  day.Add(std::move(table));
  const WorkingSet::Window& hour = day.details.working_set.windows.back();
  section->parts.push_back(Figure{
      .id = "working_set",
      .title = "How much is touched in a while",
      .subtitle = "distinct 4 KiB blocks, read or written; an estimate, standard error 0.41 %",
      .alt = fmt::format("At most {} are touched in {}.", FormatBytes(hour.peak_bytes),
                         FormatDurationNs(hour.window_ns)),
      .table = "working_set",
      .chart = {.kind = Chart::Kind::kBars,
                .x = "window_ns",
                .panels = {{"bytes", Unit::kBytes}},
                .series = {{"mean_bytes", Chart::Style::kLine, 2},
                           {"peak_bytes", Chart::Style::kLine, 3}}}});
}

}  // namespace

void AddAddresses(DayPageMaker& day) {
  Section& section = day.NewSection("where", "Where on the disk");
  for (size_t i = 0; i < day.details.addresses.size(); ++i) {
    const Details::DeviceMap& device = day.details.addresses[i];
    const AddressHeatMap& map = device.map;
    const std::string id = "addresses_" + std::to_string(i + 1);
    const std::string of = day.details.addresses.size() > 1 ? " on " + device.device : "";
    TableMaker table(id, "Reads and writes by time and address" + of);
    table.Column("from_ns", "from", Unit::kTimeNs)
        .Column("from_bytes", "address from", Unit::kBytes)
        .Column("to_bytes", "to", Unit::kBytes)
        .Column("reads", "reads", Unit::kCount)
        .Column("writes", "writes", Unit::kCount);
    for (size_t column = 0; column < map.columns; ++column) {
      for (size_t row = 0; row < map.rows; ++row) {
        const size_t at = column * map.rows + row;
        if (map.reads[at] + map.writes[at] == 0) continue;
        table.Row({static_cast<int64_t>(column) * map.column_ns, row * map.row_bytes,
                   (row + 1) * map.row_bytes, map.reads[at], map.writes[at]});
      }
    }
    day.Add(std::move(table));
    for (const bool write : {false, true}) {
      const std::vector<uint64_t>& counts = write ? map.writes : map.reads;
      const auto cells = static_cast<size_t>(
          std::count_if(counts.begin(), counts.end(), [](uint64_t n) { return n > 0; }));
      section.parts.push_back(Figure{
          .id = id + (write ? "_writes" : "_reads"),
          .title = std::string(write ? "Writes" : "Reads") + " by address, over time" + of,
          .subtitle =
              "a cell is " + FormatDurationNs(map.column_ns) + " by " + FormatBytes(map.row_bytes),
          .alt = fmt::format("{} touch {} of {} cells.", write ? "Writes" : "Reads",
                             FormatCount(cells), FormatCount(counts.size())),
          .table = id,
          .chart = {.kind = Chart::Kind::kMap,
                    .x = "from_ns",
                    .x_axis = {"", Unit::kTimeNs},
                    .panels = {{"address", Unit::kBytes}},
                    .series = {{write ? "writes" : "reads", Chart::Style::kLine, write ? 1 : 0}},
                    .y = "from_bytes",
                    .y_to = "to_bytes",
                    .value = write ? "writes" : "reads",
                    .x_step = static_cast<double>(map.column_ns),
                    .height = 300}});
    }
  }
  SeekFigure(day, &section);
  BlockFigure(day, &section);
  WorkingSetFigure(day, &section);
  ReuseFigure(day, &section);
}

}  // namespace blktape
