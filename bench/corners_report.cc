#include "bench/corners_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

#include "analysis/corners_comparison.h"
#include "base/json.h"
#include "base/quantity.h"
#include "base/version.h"

namespace blktape {
namespace {

constexpr size_t kWideColumns = 79;
constexpr size_t kNarrowColumns = 39;

// Three significant digits at least, thousands apart: "0.42", "12.3", "1,234".
std::string Figure(std::optional<double> value) {
  if (!value) return "-";
  if (*value >= 99.95) return FormatCount(static_cast<uint64_t>(std::llround(*value)));
  return *value >= 9.995 ? fmt::format("{:.1f}", *value) : fmt::format("{:.2f}", *value);
}

std::optional<double> Megabytes(const CornerResult* result) {
  if (result == nullptr || !result->bytes_per_second()) return std::nullopt;
  return *result->bytes_per_second() / 1e6;
}

std::optional<double> Iops(const CornerResult* result) {
  return result == nullptr ? std::nullopt : result->iops();
}

bool IsRead(const CornerResult& result) { return result.step.workload.read_share > 0; }
uint64_t BlockBytes(const CornerResult& result) { return result.step.workload.sizes.front().bytes; }

// The first that fits: of the group, pattern, block size and depth. Null if none was run.
const CornerResult* Find(const CornersReport& report, const std::string& group, bool read,
                         WorkloadSpec::Pattern pattern, uint32_t queue_depth) {
  for (const CornerResult& result : report.results) {
    if (result.group == group && IsRead(result) == read &&
        result.step.workload.pattern == pattern && result.step.queue_depth == queue_depth) {
      return &result;
    }
  }
  return nullptr;
}

std::string Summary(const CornersReport& report, bool narrow) {
  struct Row {
    const char* group;
    WorkloadSpec::Pattern pattern;
    uint32_t queue_depth;
  };
  using enum WorkloadSpec::Pattern;
  std::string rows;
  for (const Row& row : {Row{"sequential", kSequential, 1}, Row{"incompressible", kSequential, 1},
                         Row{"depth", kRandom, 32}, Row{"depth", kRandom, 1}}) {
    const CornerResult* read = Find(report, row.group, true, row.pattern, row.queue_depth);
    const CornerResult* write = Find(report, row.group, false, row.pattern, row.queue_depth);
    const CornerResult* any = read != nullptr ? read : write;
    if (any == nullptr) continue;
    const std::string name = fmt::format("{} {:>7} QD {}", row.pattern == kRandom ? "RND" : "SEQ",
                                         FormatBytes(BlockBytes(*any)), row.queue_depth);
    if (narrow) {
      rows += name + "\n";
      for (const CornerResult* one : {read, write}) {
        rows += fmt::format("  {:<5} {:>9} MB/s {:>11} IOPS\n", one == read ? "read" : "write",
                            Figure(Megabytes(one)), Figure(Iops(one)));
      }
      continue;
    }
    rows += fmt::format("{:<18} {:>13} {:>13} {:>14} {:>14}\n", name, Figure(Megabytes(read)),
                        Figure(Megabytes(write)), Figure(Iops(read)), Figure(Iops(write)));
  }
  if (rows.empty()) return "";
  if (narrow) return rows + "\n";
  return fmt::format("{:<18} {:>13} {:>13} {:>14} {:>14}\n", "", "read MB/s", "write MB/s",
                     "read IOPS", "write IOPS") +
         rows + "\n";
}

std::string Latency(const LatencyHistogram& histogram, uint32_t ppm) {
  const std::optional<int64_t> ns = histogram.MeaningfulPercentileNs(ppm);
  return ns ? FormatDurationNs(*ns) : "-";
}

// Words of a line, those that are wanted and not empty.
std::string Joined(const std::vector<std::string>& words, const std::vector<bool>& wanted) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (!wanted[i] || words[i].empty()) continue;
    text += (text.empty() ? "" : ", ") + words[i];
  }
  return text;
}

// Broken at blanks, the lines after the first indented by four.
std::string Broken(const std::string& text, size_t columns) {
  std::string broken;
  size_t line = 0;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const size_t length = end - at;
    if (line > 0 && line + 1 + length > columns) {
      broken += "\n    ";
      line = 4;
    } else if (line > 0) {
      broken += ' ';
      ++line;
    }
    broken += text.substr(at, length);
    line += length;
    at = end + 1;
  }
  return broken + "\n";
}

// What all tests of a group share stands in its heading, what tells them apart in their rows.
std::string Group(const CornersReport& report, const std::string& group, bool narrow) {
  std::vector<const CornerResult*> rows;
  std::vector<std::vector<std::string>> words;
  for (const CornerResult& result : report.results) {
    if (result.group != group) continue;
    rows.push_back(&result);
    words.push_back(ParametersOf(result.step));
  }
  if (rows.empty()) return "";
  std::vector<bool> differs(words.front().size(), false);
  std::vector<bool> shared(words.front().size(), true);
  for (const std::vector<std::string>& row : words) {
    for (size_t i = 0; i < row.size(); ++i) {
      if (row[i] != words.front()[i]) differs[i] = true;
    }
  }
  for (size_t i = 0; i < differs.size(); ++i) shared[i] = !differs[i];
  const std::string heading = group + ": " + Joined(words.front(), shared);
  if (narrow) {
    std::string text = Broken(heading, kNarrowColumns);
    for (size_t i = 0; i < rows.size(); ++i) {
      const CornerResult& result = *rows[i];
      const std::string label = Joined(words[i], differs);
      if (!label.empty()) text += "  " + Broken(label, kNarrowColumns - 2);
      text += fmt::format("    {:>8} MB/s {:>11} IOPS\n", Figure(Megabytes(&result)),
                          Figure(result.iops()));
      text += fmt::format("    p50 {}, p99 {}\n", Latency(result.service_ns, kP50),
                          Latency(result.service_ns, kP99));
    }
    return text + "\n";
  }
  std::string text = Broken(heading, kWideColumns);
  text += fmt::format("{:<34} {:>7} {:>9} {:>8} {:>8} {:>8}\n", "", "MB/s", "IOPS", "p50", "p99",
                      "p99.99");
  for (size_t i = 0; i < rows.size(); ++i) {
    const CornerResult& result = *rows[i];
    std::string label = "  " + Joined(words[i], differs);
    if (label.size() > 34) {
      text += label + "\n";
      label.clear();
    }
    text += fmt::format("{:<34} {:>7} {:>9} {:>8} {:>8} {:>8}\n", label, Figure(Megabytes(&result)),
                        Figure(result.iops()), Latency(result.service_ns, kP50),
                        Latency(result.service_ns, kP99), Latency(result.service_ns, kP9999));
  }
  return text + "\n";
}

// How many times the IOPS of random data a repeated byte is written at, 4 KiB at random at QD 3.
// Absent where either was not measured.
std::optional<double> RepeatedOverRandom(const CornersReport& report) {
  const CornerResult* repeated = nullptr;
  const CornerResult* random = nullptr;
  for (const CornerResult& result : report.results) {
    if (result.group != "random" || IsRead(result) || result.step.queue_depth != 3) continue;
    if (result.step.workload.align_bytes != 4096) continue;
    if (result.step.payload.repeat) repeated = &result;
    if (!result.step.payload.repeat && result.step.payload.dedupe_percent == 0) random = &result;
  }
  if (!Iops(repeated) || !Iops(random) || *Iops(random) <= 0) return std::nullopt;
  return *Iops(repeated) / *Iops(random);
}

// A drive that compresses or deduplicates looks faster on data that nobody has.
std::string DataRemark(const CornersReport& report) {
  const std::optional<double> ratio = RepeatedOverRandom(report);
  if (!ratio || *ratio < kCompressesFrom) return "";
  return fmt::format(
      "A repeated byte is written {:.2f} times as fast as random data: this drive compresses or "
      "deduplicates, and figures of repeated data flatter it.",
      *ratio);
}

Json ResultJson(const CornerResult& result) {
  const WorkloadSpec& workload = result.step.workload;
  const LatencyHistogram& service = result.service_ns;
  return {
      {"group", result.group},
      {"name", result.step.name},
      {"condition", result.step.condition},
      {"op", IsRead(result) ? "read" : "write"},
      {"pattern", workload.pattern == WorkloadSpec::Pattern::kRandom ? "random" : "sequential"},
      {"block_bytes", BlockBytes(result)},
      {"queue_depth", result.step.queue_depth},
      {"span_bytes", workload.span_bytes},
      {"align_bytes", workload.align_bytes},
      {"compressible_percent", result.step.payload.compressible_percent},
      {"dedupe_percent", result.step.payload.dedupe_percent},
      {"repeated_byte", result.step.payload.repeat},
      {"duration_ns", OrNull(result.step.duration_ns)},
      {"elapsed_ns", result.elapsed_ns},
      {"ios", result.reads + result.writes},
      {"bytes", result.bytes},
      {"bytes_per_second", OrNull(result.bytes_per_second())},
      {"iops", OrNull(result.iops())},
      {"d2c_ns",
       {{"mean", OrNull(service.mean_ns())},
        {"p50", OrNull(service.PercentileNs(kP50))},
        {"p95", OrNull(service.PercentileNs(kP95))},
        {"p99", OrNull(service.PercentileNs(kP99))},
        {"p999", OrNull(service.PercentileNs(kP999))},
        {"p9999", OrNull(service.PercentileNs(kP9999))},
        {"max", OrNull(service.max_ns())},
        {"exact", service.exact()}}},
      {"series",
       {{"step_ns", result.series_step_ns},
        {"bytes", result.series_bytes},
        {"ios", result.series_ios}}},
      {"stopped_early", result.outcome.stopped_early()},
  };
}

}  // namespace

std::string CornersText(const CornersReport& report, size_t columns) {
  const bool narrow = columns < kWideColumns;
  const size_t within = narrow ? kNarrowColumns : kWideColumns;
  std::string text = Summary(report, narrow);
  for (const std::string& group : CornerGroups()) text += Group(report, group, narrow);
  if (const std::string remark = DataRemark(report); !remark.empty()) {
    text += Broken(remark, within) + "\n";
  }
  for (const std::string& one : report.left_out) text += Broken("Left out: " + one, within);
  if (report.quick) {
    text += Broken(
        "QUICK: times and spans are shortened (the names say how); caches show more than the "
        "drive. Publish figures without --quick.",
        within);
  }
  if (report.stopped) {
    const std::string why = report.failure.empty() ? "." : ": " + report.failure;
    text += Broken("STOPPED before the last test" + why, within);
  }
  return text;
}

Json CornersJson(const CornersReport& report) {
  Json targets = Json::array();
  for (const proto::Device& target : report.targets) {
    targets.push_back({{"name", target.name()},
                       {"model", target.model()},
                       {"firmware", target.firmware()},
                       {"size_bytes", target.size_bytes()}});
  }
  Json tests = Json::array();
  for (const CornerResult& result : report.results) tests.push_back(ResultJson(result));
  return {{"corners", 1},
          {"tool_version", kVersion},
          {"targets", std::move(targets)},
          {"engine", report.results.empty() ? Json(nullptr) : Json(report.results.front().engine)},
          {"quick", report.quick},
          {"stopped", report.stopped},
          {"failure", report.failure.empty() ? Json(nullptr) : Json(report.failure)},
          {"seed", report.seed},
          {"left_out", report.left_out},
          {"repeated_over_random", OrNull(RepeatedOverRandom(report))},
          {"tests", std::move(tests)}};
}

}  // namespace blktape
