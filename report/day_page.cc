#include "report/day_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "analysis/details.h"
#include "analysis/latency_histogram.h"
#include "base/check.h"
#include "base/quantity.h"
#include "base/units.h"
#include "base/version.h"
#include "format/io_record.h"
#include "format/loss.h"
#include "format/trace.pb.h"
#include "report/day_verdict.h"
#include "report/page.h"

namespace blktape {
namespace {

template <typename T>
Cell CellOf(const std::optional<T>& value) {
  return value ? Cell(*value) : Cell();
}

double Share(double part, double whole) { return whole > 0 ? part / whole : 0; }
double Share(uint64_t part, uint64_t whole) {
  return Share(static_cast<double>(part), static_cast<double>(whole));
}
std::string Percent(double share) { return CellText(share, Unit::kShare); }

class TableMaker {
 public:
  TableMaker(std::string id, std::string caption) {
    table_.id = std::move(id);
    table_.caption = std::move(caption);
  }
  TableMaker& Column(std::string key, std::string label, Unit unit) {
    table_.columns.push_back({std::move(key), std::move(label), unit, {}});
    return *this;
  }
  void Row(std::vector<Cell> cells) {
    BLKTAPE_CHECK(cells.size() == table_.columns.size());
    for (size_t i = 0; i < cells.size(); ++i)
      table_.columns[i].cells.push_back(std::move(cells[i]));
  }
  void MostShown(size_t rows) { table_.most_shown = rows; }
  DataTable Take() { return std::move(table_); }

 private:
  DataTable table_;
};

class DayPageMaker {
 public:
  DayPageMaker(const Profile& profile, std::string_view name)
      : profile_(profile), details_(*profile.details), name_(name) {}

  Page Make() {
    page_.title = name_;
    page_.subtitle = Subtitle();
    page_.footer = "Made by blktape " + std::string(kVersion) +
                   ". docs/metrics.md defines each figure. This file needs no network and asks "
                   "nobody for anything.";
    page_.clock_ns = Clock();
    page_.verdict = DayVerdict(profile_);
    if (profile_.ios > 0) {
      OverTime();
      Sizes();
      Where();
      HowFast();
      HowMany();
      Idle();
      Who();
      Figures();
    }
    Conditions();
    return std::move(page_);
  }

 private:
  DataTable* Add(TableMaker maker) {
    page_.tables.push_back(maker.Take());
    return &page_.tables.back();
  }
  Section& NewSection(std::string id, std::string heading) {
    page_.sections.push_back({std::move(id), std::move(heading), {}});
    return page_.sections.back();
  }

  std::string Subtitle() const {
    std::string text =
        FormatCount(profile_.ios) + " I/Os in " + FormatDurationNs(profile_.observed_ns);
    text += ", " + FormatBytes(profile_.of(Op::kRead).bytes) + " read, " +
            FormatBytes(profile_.of(Op::kWrite).bytes) + " written";
    std::string devices;
    for (const proto::Device& device : profile_.header.devices()) {
      devices += (devices.empty() ? " · " : ", ") + device.name();
      if (!device.model().empty()) devices += " (" + device.model() + ")";
      if (devices.size() > 120) break;
    }
    text += devices.substr(0, 160);
    if (!profile_.header.source().empty()) text += " · by " + profile_.header.source();
    if (profile_.has_window()) {
      text += " · only from " + FormatDurationNs(profile_.from_ns.value_or(0));
      if (profile_.to_ns) text += " to " + FormatDurationNs(*profile_.to_ns);
      text += " of the trace";
    }
    return text;
  }

  // Local time at the first arrival.
  int64_t Clock() const {
    if (!profile_.header.has_start() || !profile_.first_arrival_ns) return 0;
    const proto::ClockAnchor& start = profile_.header.start();
    if (start.wall_ns() <= 0) return 0;
    int64_t offset_minutes = 0;
    const std::string& zone = profile_.header.timezone();  // "+02:00"
    int hours = 0;
    int minutes = 0;
    if (zone.size() == 6 && std::sscanf(zone.c_str() + 1, "%2d:%2d", &hours, &minutes) == 2) {
      offset_minutes = (zone[0] == '-' ? -1 : 1) * (hours * 60 + minutes);
    }
    const __int128 clock_ns = static_cast<__int128>(start.wall_ns()) + *profile_.first_arrival_ns -
                              start.monotonic_ns() +
                              static_cast<__int128>(offset_minutes) * 60 * kNanosPerSecond;
    return clock_ns > 0 && clock_ns < (int64_t{1} << 62) ? static_cast<int64_t>(clock_ns) : 0;
  }

  bool KnowsService() const { return profile_.without_completion < profile_.ios; }

  std::vector<Chart::Mark> Marks() const {
    std::vector<Chart::Mark> marks;
    for (const Profile::Event& event : profile_.events) {
      marks.push_back(
          {static_cast<double>(event.from_ns), static_cast<double>(event.to_ns), event.what});
    }
    return marks;
  }

  void OverTime() {
    const Timeline& timeline = details_.timeline;
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
    Add(std::move(table));
    Chart chart{.kind = Chart::Kind::kLines, .x = "from_ns", .x_axis = {"", Unit::kTimeNs}};
    chart.panels = {{"I/Os per second", Unit::kPerSecond},
                    {"bytes per second", Unit::kBytesPerSecond}};
    chart.series = {{"reads_per_s", Chart::Style::kArea, 0, 0},
                    {"writes_per_s", Chart::Style::kArea, 1, 0},
                    {"read_bytes_per_s", Chart::Style::kArea, 0, 1},
                    {"write_bytes_per_s", Chart::Style::kArea, 1, 1}};
    if (KnowsService()) {
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
    chart.marks = Marks();
    chart.height = 128;
    Section& section = NewSection("time", "Over time");
    section.parts.push_back(Figure{
        .id = "timeline",
        .title = "What happened when",
        .subtitle = "each point is " + FormatDurationNs(timeline.step_ns) +
                    "; D2C: from issue to completion, reads and writes; its p99 where a point has "
                    "100 of them or more",
        .alt = fmt::format(
            "I/Os over {}: the most in one step are {:.0f} per second, {} after the first I/O.",
            FormatDurationNs(profile_.observed_ns), most, FormatDurationNs(most_at_ns)),
        .table = "timeline",
        .chart = std::move(chart),
        .wide = true});
    LatencyMap(&section);
    if (!profile_.events.empty()) {
      TableMaker events("events", "Events and losses with a place in time");
      events.Column("from_ns", "from", Unit::kTimeNs)
          .Column("to_ns", "to", Unit::kTimeNs)
          .Column("what", "what", Unit::kText);
      for (const Profile::Event& event : profile_.events)
        events.Row({event.from_ns, event.to_ns, event.what});
      Add(std::move(events));
      section.parts.push_back(TableView{"events"});
    }
  }

  void LatencyMap(Section* section) {
    const Timeline::LatencyMap& map = details_.timeline.d2c_map;
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
    Add(std::move(table));
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

  void Sizes() {
    std::map<uint64_t, std::array<uint64_t, 4>> rows;
    const auto gather = [&](const SizeHistogram& sizes, size_t column) {
      for (const SizeHistogram::Row& row : sizes.PowersOfTwo())
        rows[row.bytes][column] += row.count;
    };
    gather(profile_.queued_read_sizes, 0);
    gather(profile_.queued_write_sizes, 1);
    gather(profile_.read_sizes, 2);
    gather(profile_.write_sizes, 3);
    if (rows.empty()) return;
    const bool asked = profile_.has_queued_sizes;
    TableMaker table("sizes", "Sizes by power of two: each row counts what is above half of it");
    table.Column("to_bytes", "up to", Unit::kBytes);
    if (asked)
      table.Column("asked_reads", "reads asked", Unit::kCount)
          .Column("asked_writes", "writes asked", Unit::kCount);
    table.Column("issued_reads", asked ? "reads issued" : "reads", Unit::kCount)
        .Column("issued_writes", asked ? "writes issued" : "writes", Unit::kCount);
    // All powers between, so that the axis is one.
    for (uint64_t bytes = rows.begin()->first; bytes < rows.rbegin()->first && bytes != 0;
         bytes *= 2)
      rows[bytes];
    for (const auto& [bytes, counts] : rows) {
      if (asked) {
        table.Row({bytes, counts[0], counts[1], counts[2], counts[3]});
      } else {
        table.Row({bytes, counts[2], counts[3]});
      }
    }
    Add(std::move(table));
    Section& section = NewSection("sizes", "Sizes");
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
             "asked", profile_.queued_read_sizes, profile_.queued_write_sizes, false);
    }
    figure("sizes_issued", "Size as the drive got it", "requests at the drive", "issued",
           profile_.read_sizes, profile_.write_sizes, !asked);
  }

  void Where() {
    Section& section = NewSection("where", "Where on the disk");
    for (size_t i = 0; i < details_.addresses.size(); ++i) {
      const Details::DeviceMap& device = details_.addresses[i];
      const AddressHeatMap& map = device.map;
      const std::string id = "addresses_" + std::to_string(i + 1);
      const std::string of = details_.addresses.size() > 1 ? " on " + device.device : "";
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
      Add(std::move(table));
      for (const bool write : {false, true}) {
        const std::vector<uint64_t>& counts = write ? map.writes : map.reads;
        const auto cells = static_cast<size_t>(
            std::count_if(counts.begin(), counts.end(), [](uint64_t n) { return n > 0; }));
        section.parts.push_back(Figure{
            .id = id + (write ? "_writes" : "_reads"),
            .title = std::string(write ? "Writes" : "Reads") + " by address, over time" + of,
            .subtitle = "a cell is " + FormatDurationNs(map.column_ns) + " by " +
                        FormatBytes(map.row_bytes),
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
    SeekFigure(&section);
    BlockFigure(&section);
  }

  void SeekFigure(Section* section) {
    const Details::Seeks& seeks = details_.d2d;
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
    Add(std::move(table));
    section->parts.push_back(Figure{
        .id = "seeks",
        .title = "How far from one request to the next",
        .subtitle = fmt::format(
            "in order of issue; 0 B: it goes on where the one before ended ({}); mean {}",
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

  void BlockFigure(Section* section) {
    const BlockHistory& blocks = details_.blocks;
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
    Add(std::move(table));
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

  // "1", "2", "3 to 4", "5 to 8" ...
  static std::string ClassName(size_t k) {
    if (k < 2) return std::to_string(k + 1);
    return FormatCount((uint64_t{1} << (k - 1)) + 1) + " to " + FormatCount(uint64_t{1} << k);
  }

  void HowFast() {
    if (profile_.all.d2c.count() == 0) return;
    Section& section = NewSection("latency", "How fast the drive was");
    std::map<int64_t, std::array<std::optional<double>, 3>> rows;
    const std::array<Op, 3> ops = {Op::kRead, Op::kWrite, Op::kFlush};
    for (size_t i = 0; i < ops.size(); ++i) {
      const auto buckets = profile_.latency_of(ops[i]).d2c.Rows();
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
    Add(std::move(table));
    const LatencyHistogram& d2c = profile_.data.d2c;
    Chart chart{
        .kind = Chart::Kind::kLines, .x = "d2c_ns", .x_axis = {"", Unit::kDurationNs, true}};
    chart.panels = {{"share of I/Os, log scale", Unit::kShare, true}};
    chart.series = {{"reads", Chart::Style::kLine, 0}, {"writes", Chart::Style::kDashed, 1}};
    if (profile_.of(Op::kFlush).ios > 0)
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
    LatencyBySize(&section);
    LatencyTable(&section);
  }

  void LatencyBySize(Section* section) {
    if (details_.by_size.empty()) return;
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
    for (const Details::SizeRow& row : details_.by_size) {
      std::vector<Cell> cells = {row.to_bytes == 0 ? "over " + FormatBytes(1 << 20)
                                                   : "to " + FormatBytes(row.to_bytes)};
      for (const Details::LatencyParts* parts : {&row.reads, &row.writes}) {
        cells.insert(cells.end(),
                     {parts->d2c.count(), CellOf(parts->d2c.PercentileNs(kP50)),
                      CellOf(parts->d2c.PercentileNs(kP99)), CellOf(parts->d2c.max_ns())});
      }
      table.Row(std::move(cells));
    }
    Add(std::move(table));
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

  void LatencyTable(Section* section) {
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
    rows("reads and writes", profile_.data);
    rows("reads", profile_.latency_of(Op::kRead));
    rows("writes", profile_.latency_of(Op::kWrite));
    rows("flushes", profile_.latency_of(Op::kFlush));
    rows("discards", profile_.latency_of(Op::kDiscard));
    for (const Details::NamedRow& flag : details_.by_flag) {
      const LatencySketch& d2c = flag.all.d2c;
      if (d2c.count() == 0) continue;
      table.Row({"flag " + flag.name + ": at the drive (D2C)", d2c.count(), CellOf(d2c.mean_ns()),
                 CellOf(d2c.PercentileNs(kP50)), CellOf(d2c.PercentileNs(kP95)),
                 CellOf(d2c.PercentileNs(kP99)), CellOf(d2c.PercentileNs(kP999)),
                 CellOf(d2c.max_ns())});
    }
    Add(std::move(table));
    section->parts.push_back(TableView{"latency"});
  }

  void HowMany() {
    if (profile_.depth.max == 0) return;
    uint64_t issued = 0;
    int64_t time_ns = 0;
    size_t last = 0;
    for (size_t k = 0; k < profile_.depth.classes.size(); ++k) {
      const InFlight::Class& one = profile_.depth.classes[k];
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
      const InFlight::Class& one = profile_.depth.classes[k];
      table.Row({ClassName(k), one.issued, Share(one.issued, issued), one.time_ns,
                 Share(static_cast<double>(one.time_ns), static_cast<double>(time_ns))});
    }
    Add(std::move(table));
    const double alone = Share(profile_.depth.classes[0].issued, issued);
    Section& section = NewSection("depth", "How many at once, and how often nothing");
    section.parts.push_back(
        Figure{.id = "queue_depth",
               .title = "Queue depth",
               .subtitle = fmt::format(
                   "reads and writes in flight; max {}, mean {:.2f} while busy, {:.3g} overall",
                   FormatCount(profile_.depth.max), profile_.depth.mean_busy, profile_.depth.mean),
               .alt = fmt::format("{} of reads and writes were issued with nothing else in flight; "
                                  "the most at once were {}.",
                                  Percent(alone), FormatCount(profile_.depth.max)),
               .table = "queue_depth",
               .chart = {.kind = Chart::Kind::kBars,
                         .x = "depth",
                         .panels = {{"share", Unit::kShare}},
                         .series = {{"issued_share", Chart::Style::kLine, 2},
                                    {"time_share", Chart::Style::kLine, 5}}}});
  }

  void Idle() {
    if (!KnowsService() || page_.sections.empty() || page_.sections.back().id != "depth") return;
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
      const Profile::IdleClass& idle = profile_.idle[i];
      table.Row(
          {std::string(kNames[i]), idle.count, idle.total_ns,
           Share(static_cast<double>(idle.total_ns), static_cast<double>(profile_.observed_ns))});
    }
    Add(std::move(table));
    Section& section = page_.sections.back();
    section.parts.push_back(
        Figure{.id = "idle_gaps",
               .title = "Idle time by length of the gap",
               .subtitle = fmt::format("busy {} ({}), idle {}", FormatDurationNs(profile_.busy_ns),
                                       Percent(Share(static_cast<double>(profile_.busy_ns),
                                                     static_cast<double>(profile_.observed_ns))),
                                       FormatDurationNs(profile_.idle_ns)),
               .alt = fmt::format("The drive was idle for {}.", FormatDurationNs(profile_.idle_ns)),
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
    for (const Profile::IdleCap& cap : profile_.idle_caps) {
      caps.Row({cap.cap_ns, cap.cut_ns,
                Share(static_cast<double>(cap.cut_ns), static_cast<double>(profile_.observed_ns))});
    }
    Add(std::move(caps));
    section.parts.push_back(TableView{"idle_caps"});
  }

  void Who() {
    const bool named = std::any_of(profile_.processes.begin(), profile_.processes.end(),
                                   [](const auto& row) { return !row.name.empty(); });
    if (!named && profile_.devices.size() < 2) return;
    Section& section = NewSection("who", "Who did it");
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
      for (const Profile::ProcessRow& row : profile_.processes) {
        table.Row({name_of(row.name), row.reads.ios, row.writes.ios, row.other.ios, row.reads.bytes,
                   row.writes.bytes});
      }
      table.MostShown(kShown);
      Add(std::move(table));
      const size_t drawn = std::min(kDrawn, profile_.processes.size());
      section.parts.push_back(Figure{
          .id = "processes",
          .title = "Bytes by process",
          .subtitle =
              profile_.processes.size() > drawn
                  ? fmt::format("the {} with most bytes of {}; who queued the I/O, which for "
                                "buffered writes is the kernel's own writer",
                                drawn, FormatCount(profile_.processes.size()))
                  : "who queued the I/O, which for buffered writes is the kernel's own writer",
          .alt = fmt::format("{} processes.", FormatCount(profile_.processes.size())),
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
      for (const Details::NamedRow& row : details_.by_process) {
        const Details::LatencyParts& parts = row.all;
        waits.Row({name_of(row.name), parts.d2c.count(), CellOf(parts.d2c.mean_ns()),
                   CellOf(parts.d2c.PercentileNs(kP50)), CellOf(parts.d2c.PercentileNs(kP99)),
                   CellOf(parts.q2c.PercentileNs(kP50)), CellOf(parts.q2c.PercentileNs(kP99)),
                   CellOf(parts.q2c.max_ns())});
      }
      waits.MostShown(15);
      Add(std::move(waits));
      section.parts.push_back(TableView{"process_latency"});
    }
    if (profile_.devices.size() > 1) {
      TableMaker table("devices", "Devices");
      table.Column("device", "device", Unit::kText)
          .Column("reads", "reads", Unit::kCount)
          .Column("writes", "writes", Unit::kCount)
          .Column("read_bytes", "read", Unit::kBytes)
          .Column("write_bytes", "written", Unit::kBytes)
          .Column("d2c_p50_ns", "median D2C", Unit::kDurationNs)
          .Column("d2c_p99_ns", "p99 D2C", Unit::kDurationNs);
      for (const Profile::DeviceRow& row : profile_.devices) {
        table.Row({row.name, row.reads.ios, row.writes.ios, row.reads.bytes, row.writes.bytes,
                   CellOf(row.d2c.MeaningfulPercentileNs(kP50)),
                   CellOf(row.d2c.MeaningfulPercentileNs(kP99))});
      }
      table.MostShown(kShown);
      Add(std::move(table));
      section.parts.push_back(TableView{"devices"});
    }
  }

  void Figures() {
    Section& section = NewSection("figures", "Figures");
    TableMaker mix("operations", "Operations");
    mix.Column("operation", "operation", Unit::kText)
        .Column("ios", "I/Os", Unit::kCount)
        .Column("share", "share", Unit::kShare)
        .Column("bytes", "bytes", Unit::kBytes);
    for (int i = 0; i < kOpCount; ++i) {
      const Op op = static_cast<Op>(i);
      const Profile::Totals& totals = profile_.of(op);
      if (totals.ios > 0)
        mix.Row({OpName(op), totals.ios, Share(totals.ios, profile_.ios), totals.bytes});
    }
    Add(std::move(mix));
    section.parts.push_back(TableView{"operations"});

    TableMaker table("order", "Order and place of reads and writes");
    table.Column("figure", "figure", Unit::kText)
        .Column("all", "all", Unit::kShare)
        .Column("reads", "reads", Unit::kShare)
        .Column("writes", "writes", Unit::kShare);
    const uint64_t reads = profile_.read_sizes.count();
    const uint64_t writes = profile_.write_sizes.count();
    const auto row = [&table](std::string figure, uint64_t of_reads, uint64_t all_reads,
                              uint64_t of_writes, uint64_t all_writes) {
      table.Row({std::move(figure), Share(of_reads + of_writes, all_reads + all_writes),
                 all_reads > 0 ? Cell(Share(of_reads, all_reads)) : Cell(),
                 all_writes > 0 ? Cell(Share(of_writes, all_writes)) : Cell()});
    };
    row("exactly 4 KiB", profile_.read_sizes.CountOf(4096), reads,
        profile_.write_sizes.CountOf(4096), writes);
    row("sequential: begins where the one before on its device ended", profile_.sequential_reads,
        reads, profile_.sequential_device - profile_.sequential_reads, writes);
    row("begins at a multiple of 4 KiB", profile_.aligned_reads.begin_4k,
        profile_.aligned_reads.requests, profile_.aligned_writes.begin_4k,
        profile_.aligned_writes.requests);
    row("begins and ends at a multiple of 4 KiB", profile_.aligned_reads.whole_4k,
        profile_.aligned_reads.requests, profile_.aligned_writes.whole_4k,
        profile_.aligned_writes.requests);
    table.Row({fmt::format("goes on where one of the last {} runs ended", Details::kStreams),
               Share(details_.continues_stream, profile_.data_requests), Cell(), Cell()});
    const BlockHistory& blocks = details_.blocks;
    if (blocks.read_blocks > 0) {
      table.Row({"blocks read that the trace had not written before", Cell(),
                 Share(blocks.read_first_blocks, blocks.read_blocks), Cell()});
    }
    Add(std::move(table));
    section.parts.push_back(TableView{"order"});

    TableMaker bursts("bursts", "Bursts: the fullest window against the mean one");
    bursts.Column("window_ns", "window", Unit::kDurationNs)
        .Column("peak_ios", "most I/Os", Unit::kCount)
        .Column("mean_ios", "mean", Unit::kNumber)
        .Column("ratio", "peak to mean", Unit::kNumber);
    for (const Details::Burst& burst : details_.bursts) {
      if (burst.window_ns > profile_.observed_ns) continue;  // the trace is shorter
      bursts.Row({burst.window_ns, burst.peak_ios, burst.mean_ios,
                  burst.mean_ios > 0
                      ? Cell(Share(static_cast<double>(burst.peak_ios), burst.mean_ios))
                      : Cell()});
    }
    if (profile_.observed_ns >= details_.bursts.front().window_ns) {
      Add(std::move(bursts));
      section.parts.push_back(TableView{"bursts"});
    }
  }

  void Conditions() {
    using State = Checklist::State;
    Section& section = NewSection("conditions", "Conditions and validity");
    Checklist list{.caption = "What this rests on", .subjects = {name_}, .rows = {}};
    const auto row = [&list](std::string check, State state, std::string text) {
      list.rows.push_back({std::move(check), {{state, std::move(text)}}});
    };
    const auto none = [&row](std::string check, uint64_t count, const std::string& unit,
                             State else_state) {
      row(std::move(check), count == 0 ? State::kGood : else_state,
          count == 0 ? "none" : FormatCount(count) + unit);
    };
    row("the recorder ended the trace itself",
        profile_.finished_cleanly ? State::kGood : State::kBad,
        profile_.finished_cleanly ? "yes" : "no, its end may be missing");
    row("lost events",
        profile_.lost_events == 0 && !profile_.losses_uncountable ? State::kGood : State::kBad,
        profile_.lost_events == 0 && !profile_.losses_uncountable
            ? "none"
            : (profile_.losses_uncountable ? "at least " : "") + FormatCount(profile_.lost_events));
    none("failed I/Os", profile_.errors, " with an error", State::kBad);
    none("times that run backwards", profile_.negative_times, ", in no latency", State::kBad);
    none("I/Os without an issue time", profile_.without_issue, "; their queue time stands for it",
         State::kNone);
    none("I/Os without a completion time", profile_.without_completion,
         ", in no latency or busy time", State::kNone);
    none("records out of the order of arrival", profile_.out_of_order, ", put in their place",
         State::kNone);
    if (profile_.recorded_ns)
      row("recorded for", State::kNone, FormatDurationNs(*profile_.recorded_ns));
    if (!profile_.header.source().empty())
      row("recorded by", State::kNone, profile_.header.source());
    if (!profile_.header.kernel().empty()) row("kernel", State::kNone, profile_.header.kernel());
    for (const std::string& filter : profile_.header.filters())
      row("left out on purpose", State::kNone, filter);
    int devices = 0;
    for (const proto::Device& device : profile_.header.devices()) {
      if (++devices > 20) break;
      std::string text = device.name();
      if (!device.model().empty()) text += ", " + device.model();
      if (device.has_size_bytes()) text += ", " + FormatBytes(device.size_bytes());
      if (!device.transport().empty()) text += ", " + device.transport();
      if (!device.scheduler().empty()) text += ", scheduler " + device.scheduler();
      if (!device.write_cache().empty()) text += ", " + device.write_cache();
      row("device", State::kNone, std::move(text));
    }
    section.parts.push_back(std::move(list));
    if (!profile_.losses.empty()) {
      TableMaker losses("losses", "Not in the trace");
      losses.Column("reason", "reason", Unit::kText)
          .Column("events", "events", Unit::kCount)
          .Column("reports_without_count", "reports without a number", Unit::kCount)
          .Column("means_lost", "means lost data", Unit::kText);
      for (const auto& [reason, loss] : profile_.losses) {
        losses.Row({std::string(LossReasonName(reason)), loss.count, loss.unknowable,
                    std::string(MeansLostEvents(reason) ? "yes" : "no")});
      }
      Add(std::move(losses));
      section.parts.push_back(TableView{"losses"});
    }
  }

  const Profile& profile_;
  const Details& details_;
  const std::string name_;
  Page page_;
};

}  // namespace

Page DayPage(const Profile& profile, std::string_view name) {
  BLKTAPE_CHECK(profile.details != nullptr);
  return DayPageMaker(profile, name).Make();
}

}  // namespace blktape
