#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/foreground.h"
#include "base/json.h"

namespace blktape {

// The percentiles that a report of a score has of responses and of lateness, in parts per million.
inline constexpr std::array<uint32_t, 14> kShownPercentilesPpm = {
    500'000, 600'000, 700'000, 800'000, 900'000, 950'000, 980'000,
    990'000, 995'000, 998'000, 999'000, 999'500, 999'800, 999'900};

// Keys of the classes in JSON.
inline constexpr std::array<const char*, kWaitClasses> kWaitClassKeys = {
    "reads_to_16k", "reads_over_16k", "sync_writes_and_flushes"};

// What a report.json of a score (docs/score.md, "JSON") holds beside its figures: what explains it,
// its runs and their conditions. Nothing is reckoned from it. A report of an older blktape lacks
// some of it: absent then, or empty.
struct ScoreEvidence {
  // Of kShownPercentilesPpm, those of too few I/Os absent; empty where the report has none.
  struct Percentiles {
    uint64_t ios = 0;
    std::vector<std::optional<double>> ns;
  };
  struct Response {
    std::optional<double> mean_ns, worst_1_percent_ns;
  };
  struct Segment {
    std::optional<double> from_ns;
    uint64_t foreground = 0;
    std::array<uint64_t, kWaitClasses> by_class{};
    uint64_t bytes = 0;
  };
  // Columns of equal length.
  struct Series {
    std::string run;
    double step_ns = 0;
    std::vector<std::optional<double>> ios_per_s, bytes_per_s, depth_mean, p99_ns, max_ns;
  };
  struct Run {
    std::string label, file, rule, engine;
    bool repeated = false;
    std::vector<std::string> invalid_reasons;
    uint64_t issued = 0, completed = 0, errors = 0;
    std::optional<uint64_t> planned;
    double wall_ns = 0, busy_ns = 0, wait_ns = 0, host_wait_ns = 0;
    // Lateness of the host and service time; absent where there are too few I/Os.
    std::optional<double> late_p50_ns, late_p99_ns, late_p999_ns, late_max_ns;
    std::optional<double> d2c_p50_ns, d2c_p99_ns;
    std::optional<double> began_ns;  // since the Unix epoch
    std::map<std::string, uint64_t> skipped, emulated;
    std::optional<uint64_t> foreign_sectors;
    std::optional<double> idle_cut_ns;
    std::optional<double> celsius_before, celsius_after, celsius_limit;
    std::optional<uint64_t> throttles, throttled_s, cpu_throttles;

    // In a closed or open loop, not at max speed.
    bool waits() const;
  };
  struct Target {
    std::string transport, scheduler, write_cache, drive_write_cache, link;
    bool is_file = false;
  };
  struct Repeated {
    uint64_t cycle = 0;
    std::vector<std::string> reasons;
  };
  struct Sample {
    uint64_t windows = 0, windows_drawn = 0, foreground = 0;
  };

  std::array<Percentiles, kWaitClasses> responses;
  std::array<Response, kWaitClasses> mean_responses;
  Percentiles lateness;
  std::vector<Segment> segments;
  std::optional<Series> series;
  std::vector<Run> runs;
  std::vector<Target> targets;
  std::vector<Repeated> repeated;
  std::optional<Sample> sample;
  std::vector<double> waits_ns;  // of each cycle
  std::string host;
  std::vector<std::string> notes;  // what a reader must know before believing it
  std::vector<std::string> shared;
  uint64_t lost_events = 0;
  bool loss_accepted = false;
  bool all_is_foreground = false;
  bool rank_changes_with_weights = false;
  std::optional<double> score_with_repeated;
  std::optional<uint64_t> first_stage_cycles;
};

// Throws Json::exception where a value is of another kind than defined.
ScoreEvidence ReadEvidence(const Json& report);

}  // namespace blktape
