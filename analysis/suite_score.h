#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "analysis/drive_comparison.h"
#include "analysis/measured_score.h"
#include "analysis/score.h"
#include "base/status.h"

namespace blktape {

// One drive over several traces, each of its weight, and what they come to in one figure.
// Definition: docs/score.md, "Suites".

inline constexpr int kSuiteVersion = 1;

struct SuiteScore {
  struct Trace {
    double weight = 1;  // above 0; only their ratios count
    MeasuredScore score;
  };
  std::string name;           // of the suite
  std::vector<Trace> traces;  // at least one, in the order of the suite

  // Of its first trace: model of the target, else its path.
  std::string drive() const { return traces.front().score.name(); }
  // Each of its scores is.
  bool valid() const;
  // The part of trace `index` in the composite: its weight by the sum of all.
  double share(size_t index) const;

  // The weighted geometric mean. Absent where a trace has no score.
  struct Composite {
    double score = 0;
    std::optional<double> ci_low, ci_high;  // absent where a trace has none
  };
  std::optional<Composite> composite() const;
  // As of a score.
  bool interval_too_wide() const;
};

// From the text of a result of a suite (docs/score.md). kDataLoss if it is none, kUnimplemented if
// it or one of its scores is of a version that this program does not know.
Result<SuiteScore> ParseSuiteScore(const std::string& json);

struct ComparedSuite {
  std::string label;   // unique among the drives
  std::string source;  // where it was read
  SuiteScore suite;
};

struct SuitePair {
  size_t first = 0, second = 0;  // where there is a verdict, the first scores higher
  Obstacle obstacle = Obstacle::kNone;
  // Of the suite the trace on which the obstacle is; absent where it is the suite's.
  std::optional<size_t> trace;
  Comparison comparison;
};

struct SuiteComparison {
  std::vector<ComparedSuite> drives;          // as they were given
  std::vector<SuitePair> pairs;               // as those of DriveComparison
  std::vector<std::optional<size_t>> places;  // likewise
  std::vector<DriveComparison> traces;        // one a trace; none where the suites differ
  bool whole() const;
};

// At least two drives.
SuiteComparison CompareSuites(std::vector<ComparedSuite> drives);

}  // namespace blktape
