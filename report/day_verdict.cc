#include "report/day_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "analysis/in_flight.h"
#include "analysis/latency_histogram.h"
#include "base/quantity.h"
#include "format/io_record.h"

namespace blktape {
namespace {

using Words = Sentence::Words;

double Share(double part, double whole) { return whole > 0 ? part / whole : 0; }
double Share(uint64_t part, uint64_t whole) {
  return Share(static_cast<double>(part), static_cast<double>(whole));
}

// Whole percents where they say enough. Only all is 100 %.
std::string RoundPercent(double share) {
  if (share >= 1) return "100 %";
  if (share >= 0.995) return fmt::format("{:.1f} %", std::min(100 * share, 99.9));
  return share > 0.1 ? fmt::format("{:.0f} %", 100 * share) : fmt::format("{:.2g} %", 100 * share);
}

}  // namespace

std::vector<Sentence> DayVerdict(const Profile& profile) {
  std::vector<Sentence> verdict;
  if (profile.DataMissing()) {
    Sentence sentence{.words = {}, .bad = true};
    if (!profile.finished_cleanly) {
      sentence.words.push_back({"The recorder was cut off, the end is missing. ", true});
    }
    if (profile.lost_events > 0 || profile.losses_uncountable) {
      sentence.words.push_back({"Data is missing: ", true});
      sentence.words.push_back({(profile.losses_uncountable ? "at least " : "") +
                                FormatCounted(profile.lost_events, "event") +
                                (profile.lost_events == 1 ? " was" : " were") +
                                " lost, all that follows is of the rest."});
    }
    verdict.push_back(std::move(sentence));
  }
  if (profile.ios == 0) {
    verdict.push_back({{{profile.has_window() ? "Nothing happened in this window."
                                              : "Nothing happened: the trace holds no I/O.",
                         true}}});
    return verdict;
  }
  const uint64_t issued = profile.read_sizes.count() + profile.write_sizes.count();
  const uint64_t asked = profile.queued_read_sizes.count() + profile.queued_write_sizes.count();
  const uint64_t issued_4k = profile.read_sizes.CountOf(4096) + profile.write_sizes.CountOf(4096);
  const uint64_t asked_4k =
      profile.queued_read_sizes.CountOf(4096) + profile.queued_write_sizes.CountOf(4096);
  if (asked > 0 && issued > 0) {
    verdict.push_back(
        {{{RoundPercent(Share(asked_4k, asked)), true},
          {" of what software asked for were 4 KiB; of what the drive got, after merging, "},
          {RoundPercent(Share(issued_4k, issued)), true},
          {"."}}});
  } else if (issued > 0) {
    verdict.push_back({{{RoundPercent(Share(issued_4k, issued)), true},
                        {" of the reads and writes at the drive were 4 KiB."}}});
  }
  if (profile.without_completion < profile.ios && profile.observed_ns > 0) {
    Sentence busy{{{"The disk was busy "},
                   {RoundPercent(Share(static_cast<double>(profile.busy_ns),
                                       static_cast<double>(profile.observed_ns))),
                    true},
                   {" of the time"}}};
    uint64_t begun = 0;
    for (const InFlight::Class& one : profile.depth.classes) begun += one.issued;
    if (begun > 0) {
      busy.words.push_back({"; "});
      busy.words.push_back({RoundPercent(Share(profile.depth.classes[0].issued, begun)), true});
      busy.words.push_back({" of its reads and writes were issued with nothing else in flight"});
    }
    busy.words.push_back({"."});
    verdict.push_back(std::move(busy));
    verdict.push_back({{{"Software waited for it "},
                        {FormatDurationNs(profile.wait_ns), true},
                        {" in "},
                        {FormatDurationNs(profile.observed_ns), true},
                        {": reads, sync writes and flushes."}}});
  }
  const Writers writers = WritersOf(profile);
  const uint64_t written = profile.of(Op::kWrite).bytes;
  if (writers.kernel_bytes > 0) {
    verdict.push_back({{{RoundPercent(Share(writers.kernel_bytes, written)), true},
                        {" of all bytes written came from the kernel's own writers (kworker)"}}});
    if (writers.program != nullptr) {
      std::vector<Words>& words = verdict.back().words;
      words.push_back({"; of programs, "});
      words.push_back({writers.program->name, true, true});
      words.push_back({" wrote most, "});
      words.push_back({RoundPercent(Share(writers.program->writes.bytes, written)), true});
    }
    verdict.back().words.push_back({"."});
  } else if (writers.program != nullptr) {
    verdict.push_back({{{RoundPercent(Share(writers.program->writes.bytes, written)), true},
                        {" of all bytes written came from "},
                        {writers.program->name, true, true},
                        {"."}}});
  }
  const LatencyHistogram& d2c = profile.data.d2c;
  const auto p50 = d2c.MeaningfulPercentileNs(kP50);
  const auto p99 = d2c.MeaningfulPercentileNs(kP99);
  if (p50 && p99) {
    verdict.push_back({{{"Half of all reads and writes took the drive less than "},
                        {FormatDurationNs(*p50), true},
                        {", one in a hundred more than "},
                        {FormatDurationNs(*p99), true},
                        {"."}}});
  }
  return verdict;
}

}  // namespace blktape
