#include "analysis/score_evidence.h"

#include <cmath>
#include <utility>

#include "base/json.h"

namespace blktape {
namespace {

// Null where there is none of that name.
const Json& At(const Json& json, const char* key) {
  static const Json kNone;
  if (!json.is_object()) return kNone;
  const auto found = json.find(key);
  return found == json.end() ? kNone : *found;
}

template <typename T>
T Or(const Json& value, T otherwise) {
  return value.is_null() ? std::move(otherwise) : value.get<T>();
}

// Finite and not negative, which all figures here are.
std::optional<double> Figure(const Json& value) {
  if (value.is_null()) return std::nullopt;
  const double number = value.get<double>();
  return std::isfinite(number) && number >= 0 && number < 9e18 ? std::optional(number)
                                                               : std::nullopt;
}

std::optional<double> Celsius(const Json& value) {
  if (value.is_null()) return std::nullopt;
  const double number = value.get<double>();
  return std::abs(number) < 1e6 ? std::optional(number) : std::nullopt;
}

std::optional<uint64_t> Count(const Json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<uint64_t>());
}

std::vector<std::optional<double>> Figures(const Json& values) {
  std::vector<std::optional<double>> figures;
  for (const Json& value : values) figures.push_back(Figure(value));
  return figures;
}

std::vector<std::string> Texts(const Json& values) {
  return Or(values, std::vector<std::string>());
}

ScoreEvidence::Percentiles ReadPercentiles(const Json& json) {
  if (json.is_null()) return {};
  ScoreEvidence::Percentiles read{.ios = Or<uint64_t>(At(json, "ios"), 0),
                                  .ns = Figures(At(json, "ns"))};
  read.ns.resize(kShownPercentilesPpm.size());
  return read;
}

ScoreEvidence::Segment ReadSegment(const Json& json) {
  ScoreEvidence::Segment segment{.from_ns = Figure(At(json, "from_ns")),
                                 .foreground = Or<uint64_t>(At(json, "foreground_ios"), 0),
                                 .by_class = {},
                                 .bytes = Or<uint64_t>(At(json, "bytes"), 0)};
  for (size_t i = 0; i < kWaitClasses; ++i) {
    segment.by_class[i] = Or<uint64_t>(At(json, kWaitClassKeys[i]), 0);
  }
  return segment;
}

std::optional<ScoreEvidence::Series> ReadSeries(const Json& json) {
  if (json.is_null()) return std::nullopt;
  ScoreEvidence::Series series{.run = Or(At(json, "run"), std::string()),
                               .step_ns = Figure(At(json, "step_ns")).value_or(0),
                               .ios_per_s = Figures(At(json, "ios_per_s")),
                               .bytes_per_s = Figures(At(json, "bytes_per_s")),
                               .depth_mean = Figures(At(json, "depth_mean")),
                               .p99_ns = Figures(At(json, "p99_ns")),
                               .max_ns = Figures(At(json, "max_ns"))};
  const size_t steps = series.ios_per_s.size();
  for (auto* column : {&series.bytes_per_s, &series.depth_mean, &series.p99_ns, &series.max_ns}) {
    column->resize(steps);
  }
  if (steps == 0 || series.step_ns <= 0) return std::nullopt;
  return series;
}

ScoreEvidence::Run ReadRun(const Json& json) {
  const Json& late = At(json, "lateness_ns");
  const Json& service = At(json, "d2c_ns");
  const Json& heat = At(json, "heat");
  using Counts = std::map<std::string, uint64_t>;
  return {.label = Or(At(json, "label"), std::string()),
          .file = Or(At(json, "file"), std::string()),
          .rule = Or(At(json, "rule"), std::string()),
          .engine = Or(At(json, "engine"), std::string()),
          .repeated = Or(At(json, "repeated"), false),
          .invalid_reasons = Texts(At(json, "invalid_reasons")),
          .issued = Or<uint64_t>(At(json, "issued"), 0),
          .completed = Or<uint64_t>(At(json, "completed"), 0),
          .errors = Or<uint64_t>(At(json, "errors"), 0),
          .planned = Count(At(json, "planned")),
          .wall_ns = Figure(At(json, "wall_ns")).value_or(0),
          .busy_ns = Figure(At(json, "busy_ns")).value_or(0),
          .wait_ns = Figure(At(json, "wait_ns")).value_or(0),
          .host_wait_ns = Figure(At(json, "host_wait_ns")).value_or(0),
          .late_p50_ns = Figure(At(late, "p50")),
          .late_p99_ns = Figure(At(late, "p99")),
          .late_p999_ns = Figure(At(late, "p999")),
          .late_max_ns = Figure(At(late, "max")),
          .d2c_p50_ns = Figure(At(service, "p50")),
          .d2c_p99_ns = Figure(At(service, "p99")),
          .began_ns = Figure(At(json, "began_ns")),
          .skipped = Or(At(json, "skipped"), Counts()),
          .emulated = Or(At(json, "emulated"), Counts()),
          .foreign_sectors = Count(At(json, "foreign_sectors")),
          .idle_cut_ns = Figure(At(json, "idle_cut_ns")),
          .celsius_before = Celsius(At(heat, "celsius_before")),
          .celsius_after = Celsius(At(heat, "celsius_after")),
          .celsius_limit = Celsius(At(heat, "celsius_limit")),
          .throttles = Count(At(heat, "throttles")),
          .throttled_s = Count(At(heat, "throttled_s")),
          .cpu_throttles = Count(At(heat, "cpu_throttles"))};
}

}  // namespace

bool ScoreEvidence::Run::waits() const { return !rule.starts_with("max"); }

ScoreEvidence ReadEvidence(const Json& report) {
  ScoreEvidence evidence;
  const Json& percentiles = At(report, "percentiles");
  // Other percentiles than these would stand at the wrong place.
  if (At(percentiles, "ppm") == Json(kShownPercentilesPpm)) {
    for (size_t i = 0; i < kWaitClasses; ++i) {
      evidence.responses[i] = ReadPercentiles(At(percentiles, kWaitClassKeys[i]));
    }
    evidence.lateness = ReadPercentiles(At(percentiles, "lateness"));
  }
  for (size_t i = 0; i < kWaitClasses; ++i) {
    const Json& mean = At(At(report, "responses"), kWaitClassKeys[i]);
    evidence.mean_responses[i] = {Figure(At(mean, "mean_ns")),
                                  Figure(At(mean, "worst_1_percent_ns"))};
  }
  for (const Json& segment : At(report, "segments")) {
    evidence.segments.push_back(ReadSegment(segment));
  }
  evidence.series = ReadSeries(At(report, "series"));
  for (const Json& run : At(report, "runs")) evidence.runs.push_back(ReadRun(run));
  for (const Json& target : At(report, "targets")) {
    evidence.targets.push_back(
        {.transport = Or(At(target, "transport"), std::string()),
         .scheduler = Or(At(target, "scheduler"), std::string()),
         .write_cache = Or(At(target, "write_cache"), std::string()),
         .drive_write_cache = Or(At(target, "drive_write_cache"), std::string()),
         .link = Or(At(target, "link"), std::string()),
         .is_file = Or(At(target, "is_file"), false)});
  }
  for (const Json& one : At(report, "repeated_cycles")) {
    evidence.repeated.push_back(
        {.cycle = Or<uint64_t>(At(one, "cycle"), 0), .reasons = Texts(At(one, "reasons"))});
  }
  if (const Json& sample = At(report, "sample"); !sample.is_null()) {
    evidence.sample = {.windows = Or<uint64_t>(At(sample, "windows"), 0),
                       .windows_drawn = Or<uint64_t>(At(sample, "windows_drawn"), 0),
                       .foreground = Or<uint64_t>(At(sample, "foreground_ios"), 0)};
  }
  for (const auto& wait_ns : Figures(At(report, "waits_ns"))) {
    if (wait_ns) evidence.waits_ns.push_back(*wait_ns);
  }
  evidence.host = Or(At(report, "host"), std::string());
  evidence.notes = Texts(At(report, "notes"));
  evidence.shared = Texts(At(report, "shared"));
  evidence.lost_events = Or<uint64_t>(At(report, "lost_events"), 0);
  evidence.loss_accepted = Or(At(report, "loss_accepted"), false);
  evidence.all_is_foreground = Or(At(report, "all_is_foreground"), false);
  evidence.rank_changes_with_weights = Or(At(report, "rank_changes_with_weights"), false);
  evidence.score_with_repeated = Figure(At(report, "score_with_repeated"));
  evidence.first_stage_cycles = Count(At(report, "first_stage_cycles"));
  return evidence;
}

}  // namespace blktape
