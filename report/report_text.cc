#include "report/report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "base/quantity.h"
#include "base/units.h"

namespace blktape {
namespace {

constexpr size_t kBarColumns = 38;

double Percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }
double Percent(uint64_t part, uint64_t whole) {
  return Percent(static_cast<double>(part), static_cast<double>(whole));
}

// Names come from a foreign file: nothing that would steer a terminal.
std::string Plain(std::string_view text, size_t columns) {
  std::string plain;
  for (const char c : text) plain += c >= ' ' && c < 0x7f ? c : '?';
  if (plain.size() > columns) plain = plain.substr(0, columns - 2) + "..";
  return plain;
}

std::string DeviceNames(const proto::Header& header) {
  std::string names;
  for (const proto::Device& device : header.devices()) {
    names += (names.empty() ? "" : ", ") + device.name();
  }
  return names.empty() ? "an unnamed device" : Plain(names, 40);
}

std::string WindowText(const Profile& profile) {
  if (!profile.has_window()) return "";
  std::string text = "Only what arrived from " + FormatDurationNs(profile.from_ns.value_or(0));
  if (profile.to_ns) text += " to " + FormatDurationNs(*profile.to_ns);
  return text + " after the first I/O of the trace.\n";
}

std::string LossText(const Profile& profile) {
  if (!profile.DataMissing()) return "Finished cleanly, nothing lost.\n";
  std::string text;
  if (!profile.finished_cleanly) {
    text += "NOT FINISHED CLEANLY: the recorder was cut off, the end is missing.\n";
  }
  if (profile.lost_events > 0 || profile.losses_uncountable) {
    text += fmt::format("DATA IS MISSING: {}{} events lost.\n",
                        profile.losses_uncountable ? "at least " : "",
                        FormatCount(profile.lost_events));
  }
  return text;
}

std::string LossTable(const Profile& profile) {
  std::string text;
  for (const auto& [reason, loss] : profile.losses) {
    if (text.empty()) text = "\nNot in the trace                       events\n";
    text += fmt::format("  {:<32}{:>11}{}\n", LossReasonName(reason), FormatCount(loss.count),
                        loss.unknowable == 0 ? ""
                                             : fmt::format("  and {} times an unknown number",
                                                           FormatCount(loss.unknowable)));
  }
  return text;
}

std::string MixTable(const Profile& profile) {
  std::string text = "\nOperation            I/Os    share        bytes   mean size   rate /s\n";
  const double seconds = static_cast<double>(profile.observed_ns) / 1e9;
  for (int i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    const Profile::Totals& totals = profile.of(op);
    if (totals.ios == 0) continue;
    text += fmt::format(
        "  {:<12}{:>11}  {:>5.1f} %  {:>11} {:>11}  {:>8}\n", OpName(op), FormatCount(totals.ios),
        Percent(totals.ios, profile.ios), FormatBytes(totals.bytes),
        FormatBytes(totals.bytes / totals.ios),
        seconds > 0 ? fmt::format("{:.1f}", static_cast<double>(totals.ios) / seconds) : "-");
  }
  return text;
}

std::string SizeBars(std::string_view title, const SizeHistogram& reads,
                     const SizeHistogram& writes) {
  const uint64_t count = reads.count() + writes.count();
  if (count == 0) return "";
  std::map<uint64_t, uint64_t> rows;
  for (const auto& row : reads.PowersOfTwo()) rows[row.bytes] += row.count;
  for (const auto& row : writes.PowersOfTwo()) rows[row.bytes] += row.count;
  uint64_t most = 1;
  for (const auto& [bytes, n] : rows) most = std::max(most, n);
  std::string text = fmt::format("\n{}\n  up to            I/Os    share\n", title);
  for (const auto& [bytes, n] : rows) {
    // A row that is not empty shows at least one mark.
    const size_t marks = n == 0 ? 0 : std::max<size_t>(1, n * kBarColumns / most);
    text += fmt::format("  {:<8}{:>13}  {:>5.1f} %{}{}\n", FormatBytes(bytes), FormatCount(n),
                        Percent(n, count), n == 0 ? "" : "  ", std::string(marks, '#'));
  }
  const uint64_t small = reads.CountOf(4096) + writes.CountOf(4096);
  text += fmt::format("  exactly 4 KiB: {:.1f} % ({} of {})\n", Percent(small, count),
                      FormatCount(small), FormatCount(count));
  return text;
}

// "Label          figures", however long those are.
std::string Line(std::string_view label, std::string_view figures) {
  constexpr size_t kLabelColumns = 15;
  return Wrapped(fmt::format("{:<{}}", label, kLabelColumns), std::string(kLabelColumns, ' '),
                 figures);
}

std::string AddressText(const Profile& profile) {
  return "\n" +
         Line("Sequential", fmt::format("{:.1f} % of {} reads and writes continue the one before",
                                        Percent(profile.sequential_device, profile.data_requests),
                                        FormatCount(profile.data_requests))) +
         Line("Footprint", fmt::format("{}{} ({} read, {} written), all below {}",
                                       profile.footprint.exact ? "" : "about ",
                                       FormatBytes(profile.footprint.bytes),
                                       FormatBytes(profile.footprint.read_bytes),
                                       FormatBytes(profile.footprint.write_bytes),
                                       FormatBytes(profile.max_end_bytes)));
}

std::string TimeText(const Profile& profile) {
  if (profile.busy_ns == 0 && profile.depth_all.max == 0) {
    return Line("Busy", "n/a, the trace holds no completions");
  }
  return Line("Queue depth", fmt::format("max {}{}, mean {:.2f} while busy, {:.3g} overall",
                                         profile.depth.limited ? "over " : "", profile.depth.max,
                                         profile.depth.mean_busy, profile.depth.mean)) +
         Line("Busy", fmt::format("{} ({:.1f} %), idle {}", FormatDurationNs(profile.busy_ns),
                                  Percent(static_cast<double>(profile.busy_ns),
                                          static_cast<double>(profile.observed_ns)),
                                  FormatDurationNs(profile.idle_ns))) +
         Line("Waited", fmt::format("{} for reads, sync writes and flushes",
                                    FormatDurationNs(profile.wait_ns)));
}

std::string IdleTable(const Profile& profile) {
  static constexpr std::array kNames = {
      "below 1 us",      "1 us to 10 us", "10 us to 100 us", "100 us to 1 ms", "1 ms to 10 ms",
      "10 ms to 100 ms", "100 ms to 1 s", "1 s to 10 s",     "10 s to 100 s",  "from 100 s on"};
  static_assert(kNames.size() == Profile::kIdleClasses);
  std::string text;
  for (size_t i = 0; i < kNames.size(); ++i) {
    const Profile::IdleClass& idle = profile.idle[i];
    if (idle.count == 0) continue;
    if (text.empty()) text = "\nIdle gaps               gaps        total   share of idle\n";
    text += fmt::format(
        "  {:<16}{:>10}  {:>12}         {:>5.1f} %\n", kNames[i], FormatCount(idle.count),
        FormatDurationNs(idle.total_ns),
        Percent(static_cast<double>(idle.total_ns), static_cast<double>(profile.idle_ns)));
  }
  return text;
}

std::string LatencyTable(const Profile& profile) {
  std::string text;
  const bool replay = profile.header.has_replay();
  const auto section = [&](std::string_view title, LatencyHistogram Profile::Latencies::* kind) {
    std::string rows;
    for (int i = 0; i < kOpCount; ++i) {
      const Op op = static_cast<Op>(i);
      const LatencyHistogram& histogram = profile.latency_of(op).*kind;
      if (histogram.count() > 0) rows += LatencyRow(std::string("  ") + OpName(op), histogram);
    }
    const LatencyHistogram& waited = profile.foreground_latency.*kind;
    if (waited.count() > 0) rows += LatencyRow("  foreground", waited);
    if (!rows.empty()) text += "\n" + LatencyHeading(title) + rows;
  };
  section("D2C, service", &Profile::Latencies::d2c);
  section("Q2C, response", &Profile::Latencies::q2c);
  // Lateness of the host and backlog of the drive together.
  if (replay) section("Q2D, past due", &Profile::Latencies::q2d);
  return text;
}

std::string Rows(const Profile& profile, size_t most_processes) {
  std::string text;
  const auto row = [&text](const std::string& name, const auto& of) {
    text += fmt::format("  {:<20}{:>11}  {:>11}  {:>11}  {:>11}\n", Plain(name, 20),
                        FormatCount(of.reads.ios), FormatBytes(of.reads.bytes),
                        FormatCount(of.writes.ios), FormatBytes(of.writes.bytes));
  };
  constexpr std::string_view kColumns = "      reads         read       writes      written\n";
  if (profile.devices.size() > 1) {
    text += fmt::format("\n{:<22}{}", "Device", kColumns);
    for (const Profile::DeviceRow& device : profile.devices) row(device.name, device);
  }
  const bool named = std::any_of(profile.processes.begin(), profile.processes.end(),
                                 [](const auto& process) { return !process.name.empty(); });
  if (named) {
    text += fmt::format("\n{:<22}{}", "Process", kColumns);
    for (size_t i = 0; i < std::min(most_processes, profile.processes.size()); ++i) {
      const Profile::ProcessRow& process = profile.processes[i];
      row(process.name.empty() ? "(not told)" : process.name, process);
    }
    if (profile.processes.size() > most_processes) {
      text += fmt::format("  and {} more: --top {} shows all\n",
                          FormatCount(profile.processes.size() - most_processes),
                          profile.processes.size());
    }
  }
  return text;
}

std::string OddText(const Profile& profile) {
  std::string text;
  const auto line = [&text](uint64_t count, std::string_view what) {
    if (count > 0) text += fmt::format("Note: {} {}\n", FormatCount(count), what);
  };
  line(profile.errors, "I/Os failed");
  line(profile.without_issue, "I/Os without an issue time; their queue time stands for it");
  line(profile.without_completion, "I/Os without a completion time, in no latency or busy time");
  line(profile.negative_times, "times that run backwards, in no latency");
  line(profile.implausible_times, "times beyond 36 years, taken as absent");
  line(profile.out_of_order, "records out of the order of arrival");
  line(profile.busy_cut, "I/Os too far out of the order of issue; busy time is a lower bound");
  return text.empty() ? "" : "\n" + text;
}

std::string Cell(const LatencyHistogram& histogram, std::optional<int64_t> ns) {
  return ns ? FormatDurationNs(*ns) : fmt::format("n/a (n={})", histogram.count());
}

}  // namespace

std::string Wrapped(std::string_view first, std::string_view indent, std::string_view text) {
  constexpr size_t kColumns = 79;
  std::string wrapped(first);
  size_t column = first.size();
  size_t begin = 0;
  bool line_is_empty = true;
  while (begin < text.size()) {
    size_t end = text.find_first_of(" \n", begin);
    if (end == std::string_view::npos) end = text.size();
    const size_t length = end - begin;
    if (!line_is_empty && column + 1 + length > kColumns) {
      wrapped += "\n" + std::string(indent);
      column = indent.size();
      line_is_empty = true;
    }
    if (!line_is_empty) {
      wrapped += ' ';
      ++column;
    }
    wrapped += text.substr(begin, length);
    column += length;
    line_is_empty = false;
    begin = end + 1;
  }
  return wrapped + "\n";
}

std::string LatencyHeading(std::string_view title) {
  return fmt::format("{:<13}{:>9}{:>10}{:>11}{:>11}{:>12}{:>10}\n", title, "mean", "p50", "p95",
                     "p99", "p99.9", "max");
}

std::string LatencyRow(std::string_view label, const LatencyHistogram& histogram) {
  const std::optional<double> mean = histogram.mean_ns();
  return fmt::format("{:<13}{:>9}{:>10}{:>11}{:>11}{:>12}{:>10}\n", label,
                     mean ? FormatDurationNs(std::llround(*mean)) : "n/a",
                     Cell(histogram, histogram.MeaningfulPercentileNs(kP50)),
                     Cell(histogram, histogram.MeaningfulPercentileNs(kP95)),
                     Cell(histogram, histogram.MeaningfulPercentileNs(kP99)),
                     Cell(histogram, histogram.MeaningfulPercentileNs(kP999)),
                     Cell(histogram, histogram.max_ns()));
}

std::string ProfileText(const Profile& profile, std::string_view name, size_t most_processes) {
  std::string text =
      fmt::format("{}: {} I/Os in {} on {}\n", Plain(name, 40), FormatCount(profile.ios),
                  FormatDurationNs(profile.observed_ns), DeviceNames(profile.header));
  text += WindowText(profile);
  text += LossText(profile);
  if (profile.ios == 0) {
    text += profile.has_window() ? "Nothing happened in this window.\n"
                                 : "Nothing happened: the trace holds no I/O.\n";
  } else {
    text += MixTable(profile);
    text += SizeBars("Size of requests at the drive (reads and writes)", profile.read_sizes,
                     profile.write_sizes);
    text += SizeBars("Size as software asked, before merging (reads and writes)",
                     profile.queued_read_sizes, profile.queued_write_sizes);
    text += AddressText(profile);
    text += TimeText(profile);
    if (profile.flushes_asked) {
      text += Line("Flushes", fmt::format("{} asked for, {} flagged writes, {} at the drive",
                                          FormatCount(*profile.flushes_asked),
                                          FormatCount(profile.flagged_writes_asked.value_or(0)),
                                          FormatCount(profile.of(Op::kFlush).ios)));
    }
    text += IdleTable(profile);
    text += LatencyTable(profile);
    text += Rows(profile, most_processes);
  }
  text += LossTable(profile);
  text += OddText(profile);
  return text;
}

}  // namespace blktape
