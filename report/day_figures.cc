#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>

#include "analysis/block_history.h"
#include "analysis/details.h"
#include "analysis/profile.h"
#include "format/io_record.h"
#include "report/day_sections.h"
#include "report/page.h"
#include "report/table_maker.h"

namespace blktape {

void AddFigures(DayPageMaker& day) {
  Section& section = day.NewSection("figures", "Figures");
  TableMaker mix("operations", "Operations");
  mix.Column("operation", "operation", Unit::kText)
      .Column("ios", "I/Os", Unit::kCount)
      .Column("share", "share", Unit::kShare)
      .Column("bytes", "bytes", Unit::kBytes);
  for (int i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    const Profile::Totals& totals = day.profile.of(op);
    if (totals.ios > 0)
      mix.Row({OpName(op), totals.ios, Share(totals.ios, day.profile.ios), totals.bytes});
  }
  day.Add(std::move(mix));
  section.parts.push_back(TableView{"operations"});

  TableMaker table("order", "Order and place of reads and writes");
  table.Column("figure", "figure", Unit::kText)
      .Column("all", "all", Unit::kShare)
      .Column("reads", "reads", Unit::kShare)
      .Column("writes", "writes", Unit::kShare);
  const uint64_t reads = day.profile.read_sizes.count();
  const uint64_t writes = day.profile.write_sizes.count();
  const auto row = [&table](std::string figure, uint64_t of_reads, uint64_t all_reads,
                            uint64_t of_writes, uint64_t all_writes) {
    table.Row({std::move(figure), Share(of_reads + of_writes, all_reads + all_writes),
               all_reads > 0 ? Cell(Share(of_reads, all_reads)) : Cell(),
               all_writes > 0 ? Cell(Share(of_writes, all_writes)) : Cell()});
  };
  row("exactly 4 KiB", day.profile.read_sizes.CountOf(4096), reads,
      day.profile.write_sizes.CountOf(4096), writes);
  row("sequential: begins where the one before on its device ended", day.profile.sequential_reads,
      reads, day.profile.sequential_device - day.profile.sequential_reads, writes);
  row("begins at a multiple of 4 KiB", day.profile.aligned_reads.begin_4k,
      day.profile.aligned_reads.requests, day.profile.aligned_writes.begin_4k,
      day.profile.aligned_writes.requests);
  row("begins and ends at a multiple of 4 KiB", day.profile.aligned_reads.whole_4k,
      day.profile.aligned_reads.requests, day.profile.aligned_writes.whole_4k,
      day.profile.aligned_writes.requests);
  table.Row({fmt::format("goes on where one of the last {} runs ended", Details::kStreams),
             Share(day.details.continues_stream, day.profile.data_requests), Cell(), Cell()});
  const BlockHistory& blocks = day.details.blocks;
  if (blocks.read_blocks > 0) {
    table.Row({"blocks read that the trace had not written before", Cell(),
               Share(blocks.read_first_blocks, blocks.read_blocks), Cell()});
  }
  day.Add(std::move(table));
  section.parts.push_back(TableView{"order"});

  TableMaker bursts("bursts", "Bursts: the fullest window against the mean one");
  bursts.Column("window_ns", "window", Unit::kDurationNs)
      .Column("peak_ios", "most I/Os", Unit::kCount)
      .Column("mean_ios", "mean", Unit::kNumber)
      .Column("ratio", "peak to mean", Unit::kNumber);
  for (const Details::Burst& burst : day.details.bursts) {
    if (burst.window_ns > day.profile.observed_ns) continue;  // the trace is shorter
    bursts.Row({burst.window_ns, burst.peak_ios, burst.mean_ios,
                burst.mean_ios > 0
                    ? Cell(Share(static_cast<double>(burst.peak_ios), burst.mean_ios))
                    : Cell()});
  }
  if (day.profile.observed_ns >= day.details.bursts.front().window_ns) {
    day.Add(std::move(bursts));
    section.parts.push_back(TableView{"bursts"});
  }
}

}  // namespace blktape
