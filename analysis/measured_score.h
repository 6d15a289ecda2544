#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/run_costs.h"
#include "analysis/score.h"
#include "analysis/score_evidence.h"
#include "analysis/statistics.h"
#include "base/status.h"

namespace blktape {

// A score that was measured before: what its report.json holds (docs/score.md, "JSON"), as far as
// somebody goes on to reckon with it or shows it beside others. Whether it is valid is told, not
// demanded.
struct MeasuredScore {
  // Ordinals of records, the end not included.
  struct RecordRange {
    uint64_t first = 0, end = 0;

    bool operator==(const RecordRange&) const = default;
  };
  struct Target {
    std::string path, model, serial, firmware;
    std::optional<uint64_t> size_bytes;
  };

  std::string trace, trace_hash, piece, state, rule;
  std::string reference;  // what 1000 is
  std::vector<Target> targets;
  bool valid = false;
  std::vector<std::string> invalid_reasons;
  std::optional<double> score, ci_low, ci_high;  // absent as in the report
  std::optional<double> trend_ln;
  std::optional<double> storage_wait_s_per_workday;
  std::optional<double> storage_wait_ns;  // mean over cycles
  int64_t recording_ns = 0;
  uint64_t repeated_cycles = 0;
  bool sampled = false;  // then a segment is a window
  // All of equal length, costs above 0. None where no cycle was measured.
  std::vector<SegmentCosts> reference_costs;  // empty if the report has none
  std::vector<RecordRange> segment_records;   // of each segment, if there are cycles
  Cycles cycles;
  std::vector<double> log_scores;  // one a cycle, against the report's own reference
  uint64_t first_stage = 0;        // of a published score: so many cycles tell the spread
  // Of a sample: how far the draw alone puts the mean of log_scores off.
  std::optional<MeanVariance> draw;
  double wall_ns = 0;      // of all runs of cycles that count
  ScoreEvidence evidence;  // what is shown beside it

  // Model of its target, else its path.
  std::string name() const;
  bool interval_too_wide() const;
  // Of the mean over cycles of ln S, `log_scores` or the same against another reference: of the
  // runs alone, without the draw. Absent for fewer than two cycles.
  std::optional<MeanVariance> VarianceOfRuns(std::span<const double> logs) const;
};

// The part of a rule that says how a drive is measured, without what it is (its size, its write
// cache): two drives that were measured alike are compared.
std::string_view ProcedureOf(std::string_view rule);

// From the text of a report.json. kDataLoss if it is none, kUnimplemented if the score is of
// another version, whose figures mean something else.
Result<MeasuredScore> ParseMeasuredScore(const std::string& report_json);

}  // namespace blktape
