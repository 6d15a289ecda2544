#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/measured_score.h"
#include "analysis/run_costs.h"
#include "base/status.h"

namespace blktape {

// The costs of a drive that was scored before, to be the reference of another one.
struct MeasuredReference {
  std::string name;   // model of its target, else its path
  std::string rule;   // that it was scored by
  std::string piece;  // of the trace, empty for the whole
  // What each of its costs is the cost of.
  std::vector<MeasuredScore::RecordRange> segment_records;
  std::vector<SegmentCosts> costs;  // geometric mean over its cycles
  std::vector<double> log_scores;   // of each of its cycles against that mean
  std::optional<int64_t> wait_ns;
  std::optional<int64_t> cycle_ns;  // how long a cycle's runs took
  bool interval_too_wide = false;   // of its own score, which a score against it takes as exact
};

// From the text of its report.json. kFailedPrecondition if that was a score of another trace, by
// another version or invalid, kDataLoss if it is no such report.
Result<MeasuredReference> ParseReference(const std::string& report_json,
                                         const std::string& trace_hash);

}  // namespace blktape
