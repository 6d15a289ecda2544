#include "report/report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "base/quantity.h"
#include "base/text_layout.h"
#include "base/units.h"
#include "format/io_record.h"
#include "report/day_verdict.h"
#include "report/page.h"
#include "report/text_table.h"

namespace blktape {
namespace {

// Stands for a blank at which no line is broken, until the lines are.
constexpr char kBlank = '\x01';

double Percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }
double Percent(uint64_t part, uint64_t whole) {
  return Percent(static_cast<double>(part), static_cast<double>(whole));
}

std::string DeviceNames(const proto::Header& header) {
  std::string names;
  for (const proto::Device& device : header.devices()) {
    names += (names.empty() ? "" : ", ") + device.name();
  }
  return names.empty() ? "an unnamed device" : Plain(names, 40);
}

std::string WindowText(const Profile& profile) {
  std::string filters;
  for (const std::string& word : profile.filters) {
    filters += (filters.empty() ? "Only " : ", ") + Plain(word, 40);
  }
  if (!filters.empty()) filters += ".\n";
  if (!profile.has_window()) return filters;
  std::string text =
      filters + "Only what arrived from " + FormatDurationNs(profile.from_ns.value_or(0));
  if (profile.to_ns) text += " to " + FormatDurationNs(*profile.to_ns);
  return text + " after the first I/O of the trace.\n";
}

std::string LossText(const Profile& profile, const TextLook& look) {
  if (!profile.DataMissing()) return "Finished cleanly, nothing lost.\n";
  std::string text;
  if (!profile.finished_cleanly) {
    text += Bad("NOT FINISHED CLEANLY", look) + ": the recorder was cut off, the end is missing.\n";
  }
  if (profile.lost_events > 0 || profile.losses_uncountable) {
    text += Bad("DATA IS MISSING", look) +
            fmt::format(": {}{} lost.\n", profile.losses_uncountable ? "at least " : "",
                        FormatCounted(profile.lost_events, "event"));
  }
  return text;
}

std::string LossTable(const Profile& profile, const TextLook& look) {
  TextTable table({{"Not in the trace", true}, {"events"}, {"", true, 1}});
  for (const auto& [reason, loss] : profile.losses) {
    table.Row({LossReasonName(reason), FormatCount(loss.count),
               loss.unknowable == 0
                   ? ""
                   : "and " + FormatCounted(loss.unknowable, "time") + " an unknown number"});
  }
  return table.empty() ? "" : "\n" + table.Text(look);
}

std::string MixTable(const Profile& profile, const TextLook& look) {
  TextTable table({{"Operation", true},
                   {"I/Os"},
                   {"share", false, 8},
                   {"bytes", false, 7},
                   {"mean size", false, 5},
                   {"rate /s", false, 4}});
  const double seconds = static_cast<double>(profile.observed_ns) / 1e9;
  for (int i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    const Profile::Totals& totals = profile.of(op);
    if (totals.ios == 0) continue;
    table.Row(
        {OpName(op), FormatCount(totals.ios),
         fmt::format("{:.1f} %", Percent(totals.ios, profile.ios)), FormatBytes(totals.bytes),
         FormatBytes(totals.bytes / totals.ios),
         seconds > 0 ? fmt::format("{:.1f}", static_cast<double>(totals.ios) / seconds) : "-"});
  }
  return "\n" + table.Text(look);
}

std::string SizeBars(std::string_view title, const SizeHistogram& reads,
                     const SizeHistogram& writes, const TextLook& look) {
  const uint64_t count = reads.count() + writes.count();
  if (count == 0) return "";
  std::map<uint64_t, uint64_t> rows;
  for (const auto& row : reads.PowersOfTwo()) rows[row.bytes] += row.count;
  for (const auto& row : writes.PowersOfTwo()) rows[row.bytes] += row.count;
  TextTable table({{"up to", true}, {"I/Os"}, {"share"}});
  for (const auto& [bytes, n] : rows) {
    table.Row({FormatBytes(bytes), FormatCount(n), fmt::format("{:.1f} %", Percent(n, count))},
              static_cast<double>(n));
  }
  const uint64_t small = reads.CountOf(4096) + writes.CountOf(4096);
  return "\n" + Wrapped("", "", title, look.columns) + table.Text(look) +
         Wrapped("  ", "  ",
                 fmt::format(
                     "exactly 4 KiB: {:.1f} % ({} of {}), of reads {:.1f} %, of writes {:.1f} %",
                     Percent(small, count), FormatCount(small), FormatCount(count),
                     Percent(reads.CountOf(4096), reads.count()),
                     Percent(writes.CountOf(4096), writes.count())),
                 look.columns);
}

// "Label          figures", however long those are.
std::string Line(std::string_view label, std::string_view figures, const TextLook& look) {
  constexpr size_t kLabelColumns = 15;
  return Wrapped(fmt::format("{:<{}}", label, kLabelColumns), std::string(kLabelColumns, ' '),
                 figures, look.columns);
}

std::string AddressText(const Profile& profile, const TextLook& look) {
  const uint64_t reads = profile.read_sizes.count();
  const uint64_t writes = profile.write_sizes.count();
  const auto whole = profile.aligned_reads.whole_4k + profile.aligned_writes.whole_4k;
  const auto addressed = profile.aligned_reads.requests + profile.aligned_writes.requests;
  return "\n" +
         Line("Sequential",
              fmt::format("{:.1f} % of {} reads and writes continue the one before; of reads "
                          "{:.1f} %, of writes {:.1f} %",
                          Percent(profile.sequential_device, profile.data_requests),
                          FormatCount(profile.data_requests),
                          Percent(profile.sequential_reads, reads),
                          Percent(profile.sequential_device - profile.sequential_reads, writes)),
              look) +
         Line("Aligned",
              fmt::format("{:.1f} % begin and end at a multiple of 4 KiB",
                          Percent(whole, addressed)),
              look) +
         Line("Footprint",
              fmt::format(
                  "{}{} ({} read, {} written), all below {}",
                  profile.footprint.exact ? "" : "about ", FormatBytes(profile.footprint.bytes),
                  FormatBytes(profile.footprint.read_bytes),
                  FormatBytes(profile.footprint.write_bytes), FormatBytes(profile.max_end_bytes)),
              look);
}

std::string TimeText(const Profile& profile, const TextLook& look) {
  if (profile.busy_ns == 0 && profile.depth_all.max == 0) {
    return Line("Busy", "n/a, the trace holds no completions", look);
  }
  uint64_t issued = 0;
  for (const InFlight::Class& one : profile.depth.classes) issued += one.issued;
  return Line("Queue depth",
              fmt::format("max {}{}, mean {:.2f} while busy, {} overall; {:.1f} % issued alone",
                          profile.depth.limited ? "over " : "", profile.depth.max,
                          profile.depth.mean_busy, FormatNumber(profile.depth.mean),
                          Percent(profile.depth.classes[0].issued, issued)),
              look) +
         Line("Busy",
              fmt::format("{} ({:.1f} %), idle {}", FormatDurationNs(profile.busy_ns),
                          Percent(static_cast<double>(profile.busy_ns),
                                  static_cast<double>(profile.observed_ns)),
                          FormatDurationNs(profile.idle_ns)),
              look) +
         Line("Waited", FormatDurationNs(profile.wait_ns) + " for reads, sync writes and flushes",
              look);
}

std::string ActivityText(const Profile& profile, const TextLook& look) {
  if (!look.unicode || profile.activity.size() < 2) return "";
  std::vector<double> values(profile.activity.begin(), profile.activity.end());
  // Neighbours together until they fit.
  size_t together = 1;
  while ((values.size() + together - 1) / together > look.columns - 2) ++together;
  std::vector<double> fewer((values.size() + together - 1) / together);
  for (size_t i = 0; i < values.size(); ++i) fewer[i / together] += values[i];
  const int64_t step_ns = profile.activity_step_ns * static_cast<int64_t>(together);
  return fmt::format("\n{}\n  {}\n", Strong("I/Os over time", look), Sparkline(fewer, look)) +
         Wrapped(
             "  ", "  ",
             fmt::format(
                 "a mark is {}, the highest {} I/Os", FormatDurationNs(step_ns),
                 FormatCount(static_cast<uint64_t>(*std::max_element(fewer.begin(), fewer.end())))),
             look.columns);
}

std::string IdleTable(const Profile& profile, const TextLook& look) {
  static constexpr std::array kNames = {
      "below 1 us",      "1 us to 10 us", "10 us to 100 us", "100 us to 1 ms", "1 ms to 10 ms",
      "10 ms to 100 ms", "100 ms to 1 s", "1 s to 10 s",     "10 s to 100 s",  "from 100 s on"};
  static_assert(kNames.size() == Profile::kIdleClasses);
  TextTable table({{"Idle gaps", true}, {"gaps", false, 5}, {"total"}, {"of idle", false, 7}});
  for (size_t i = 0; i < kNames.size(); ++i) {
    const Profile::IdleClass& idle = profile.idle[i];
    if (idle.count == 0) continue;
    const double share =
        Percent(static_cast<double>(idle.total_ns), static_cast<double>(profile.idle_ns));
    table.Row({kNames[i], FormatCount(idle.count), FormatDurationNs(idle.total_ns),
               fmt::format("{:.1f} %", share)},
              share);
  }
  return table.empty() ? "" : "\n" + table.Text(look);
}

std::string LatencyCell(const LatencyHistogram& histogram, std::optional<int64_t> ns) {
  return ns ? FormatDurationNs(*ns) : fmt::format("n/a (n={})", histogram.count());
}

std::string LatencyTable(const Profile& profile, const TextLook& look) {
  std::string text;
  const bool replay = profile.header.has_replay();
  const auto section = [&](std::string_view title, LatencyHistogram Profile::Latencies::* kind) {
    TextTable table({{std::string(title), true},
                     {"mean", false, 4},
                     {"p50", false, 8},
                     {"p95", false, 5},
                     {"p99", false, 7},
                     {"p99.9", false, 3},
                     {"max", false, 6}});
    const auto row = [&table](std::string_view label, const LatencyHistogram& histogram) {
      if (histogram.count() == 0) return;
      const std::optional<double> mean = histogram.mean_ns();
      table.Row({std::string(label), mean ? FormatDurationNs(std::llround(*mean)) : "n/a",
                 LatencyCell(histogram, histogram.MeaningfulPercentileNs(kP50)),
                 LatencyCell(histogram, histogram.MeaningfulPercentileNs(kP95)),
                 LatencyCell(histogram, histogram.MeaningfulPercentileNs(kP99)),
                 LatencyCell(histogram, histogram.MeaningfulPercentileNs(kP999)),
                 LatencyCell(histogram, histogram.max_ns())});
    };
    for (int i = 0; i < kOpCount; ++i)
      row(OpName(static_cast<Op>(i)), profile.latency_of(static_cast<Op>(i)).*kind);
    row("foreground", profile.foreground_latency.*kind);
    if (!table.empty()) text += "\n" + table.Text(look);
  };
  section("D2C, service", &Profile::Latencies::d2c);
  section("Q2C, response", &Profile::Latencies::q2c);
  // Lateness of the host and backlog of the drive together.
  if (replay) section("Q2D, past due", &Profile::Latencies::q2d);
  return text;
}

std::string Rows(const Profile& profile, size_t most_processes, const TextLook& look) {
  std::string text;
  const auto table_of = [](std::string_view what) {
    return TextTable({{std::string(what), true},
                      {"reads", false, 4},
                      {"read", false, 7},
                      {"writes", false, 3},
                      {"written", false, 8}});
  };
  const auto row = [](TextTable* table, const std::string& name, const auto& of) {
    table->Row({Plain(name, 20), FormatCount(of.reads.ios), FormatBytes(of.reads.bytes),
                FormatCount(of.writes.ios), FormatBytes(of.writes.bytes)},
               static_cast<double>(of.reads.bytes) + static_cast<double>(of.writes.bytes));
  };
  if (profile.devices.size() > 1) {
    TextTable table = table_of("Device");
    for (const Profile::DeviceRow& device : profile.devices) row(&table, device.name, device);
    text += "\n" + table.Text(look);
  }
  const bool named = std::any_of(profile.processes.begin(), profile.processes.end(),
                                 [](const auto& process) { return !process.name.empty(); });
  if (named) {
    TextTable table = table_of("Process");
    for (size_t i = 0; i < std::min(most_processes, profile.processes.size()); ++i) {
      const Profile::ProcessRow& process = profile.processes[i];
      row(&table, process.name.empty() ? "(not told)" : process.name, process);
    }
    text += "\n" + table.Text(look);
    if (profile.processes.size() > most_processes) {
      text += fmt::format("  and {} more: --top {} shows all\n",
                          FormatCount(profile.processes.size() - most_processes),
                          profile.processes.size());
    }
  }
  return text;
}

std::string OddText(const Profile& profile, const TextLook& look) {
  std::string text;
  const auto line = [&text, &look](uint64_t count, std::string_view what) {
    if (count > 0)
      text += Wrapped("Note: ", "  ", fmt::format("{} {}", FormatCount(count), what), look.columns);
  };
  line(profile.errors, "I/Os failed");
  line(profile.without_issue, "I/Os without an issue time; their queue time stands for it");
  line(profile.without_completion, "I/Os without a completion time, in no latency or busy time");
  line(profile.negative_times, "times that run backwards, in no latency");
  line(profile.implausible_times, "times beyond 36 years, taken as absent");
  line(profile.out_of_order, "records out of the order of arrival");
  line(profile.busy_cut, "I/Os too far out of the order of issue; busy time is a lower bound");
  line(profile.wait_cut, "I/Os too far out of order; wait time is a lower bound");
  return text.empty() ? "" : "\n" + text;
}

}  // namespace

std::string LatencyHeading(std::string_view title) {
  return fmt::format("{:<13}{:>9}{:>10}{:>11}{:>11}{:>12}{:>10}\n", title, "mean", "p50", "p95",
                     "p99", "p99.9", "max");
}

std::string LatencyRow(std::string_view label, const LatencyHistogram& histogram) {
  const std::optional<double> mean = histogram.mean_ns();
  return fmt::format("{:<13}{:>9}{:>10}{:>11}{:>11}{:>12}{:>10}\n", label,
                     mean ? FormatDurationNs(std::llround(*mean)) : "n/a",
                     LatencyCell(histogram, histogram.MeaningfulPercentileNs(kP50)),
                     LatencyCell(histogram, histogram.MeaningfulPercentileNs(kP95)),
                     LatencyCell(histogram, histogram.MeaningfulPercentileNs(kP99)),
                     LatencyCell(histogram, histogram.MeaningfulPercentileNs(kP999)),
                     LatencyCell(histogram, histogram.max_ns()));
}

std::string ProfileText(const Profile& profile, std::string_view name, size_t most_processes,
                        const TextLook& look) {
  std::string text =
      Wrapped("", "  ",
              fmt::format("{}: {} in {} on {}", Plain(name, 40), FormatCounted(profile.ios, "I/O"),
                          FormatDurationNs(profile.observed_ns), DeviceNames(profile.header)),
              look.columns);
  const std::string window = WindowText(profile);
  if (!window.empty()) text += Wrapped("", "  ", window, look.columns);
  text += LossText(profile, look);
  if (profile.ios == 0) {
    text += profile.has_window() ? "Nothing happened in this window.\n"
                                 : "Nothing happened: the trace holds no I/O.\n";
  } else {
    text += "\n";
    for (const Sentence& sentence : DayVerdict(profile)) {
      if (sentence.bad) continue;  // said above
      std::string words;
      for (const Sentence::Words& one : sentence.words) {
        std::string part = one.foreign ? Plain(one.text, 40) : one.text;
        // A figure and its unit stay on one line.
        if (one.strong) std::replace(part.begin(), part.end(), ' ', kBlank);
        words += part;
      }
      std::string lines = Wrapped("", "  ", words, look.columns);
      std::replace(lines.begin(), lines.end(), kBlank, ' ');
      text += lines;
    }
    text += ActivityText(profile, look);
    text += MixTable(profile, look);
    text += SizeBars("Size of requests at the drive (reads and writes)", profile.read_sizes,
                     profile.write_sizes, look);
    std::string asked = "Size as software asked, before merging (reads and writes)";
    if (profile.queued_stretch) {
      asked += fmt::format(", from {} to {} of the trace, which tells them by stretches",
                           FormatDurationNs(profile.queued_stretch->from_ns),
                           FormatDurationNs(profile.queued_stretch->to_ns));
    }
    text += SizeBars(asked, profile.queued_read_sizes, profile.queued_write_sizes, look);
    text += AddressText(profile, look);
    text += TimeText(profile, look);
    if (profile.flushes_asked) {
      text += Line("Flushes",
                   fmt::format("{} asked for, {} flagged writes, {} at the drive",
                               FormatCount(*profile.flushes_asked),
                               FormatCount(profile.flagged_writes_asked.value_or(0)),
                               FormatCount(profile.of(Op::kFlush).ios)),
                   look);
    }
    text += IdleTable(profile, look);
    text += LatencyTable(profile, look);
    text += Rows(profile, most_processes, look);
  }
  text += LossTable(profile, look);
  text += OddText(profile, look);
  return text;
}

}  // namespace blktape
