#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/run_costs.h"
#include "analysis/statistics.h"

namespace blktape {

// Definition and constants: docs/score.md. The weights carry this number.
inline constexpr int kScoreVersion = 1;
inline constexpr double kReferenceScore = 1000.0;
using CostWeights = std::array<double, kCosts>;
inline constexpr CostWeights kWeights = {0.40, 0.30, 0.30};  // response, tail, work
// Repeats go on until the 95 % half width of ln S is at most this.
inline constexpr double kHalfWidthGoal = 0.015;
inline constexpr double kFasterByAtLeast = 0.02;
inline constexpr int64_t kWorkdayNs = 8 * 3600 * kNanosPerSecond;

// The costs of one drive over one trace: [cycle][segment][cost].
using Cycles = std::vector<std::vector<SegmentCosts>>;

// ln(S / 1000) of one cycle against a reference, both with the same segments.
double LogScore(std::span<const SegmentCosts> reference, std::span<const SegmentCosts> drive,
                const CostWeights& weights = kWeights);

struct Score {
  double score = 0;
  // 95 %, run to run, not unit to unit. Absent for a single cycle.
  std::optional<double> ci_low, ci_high;
  std::optional<double> half_width_ln;
  std::vector<double> log_scores;  // ln(S / 1000), one a cycle
  // S with one weight at half or one and a half times its value, all renormalised to a sum of 1.
  struct Variant {
    Cost cost = Cost::kResponse;
    double factor = 1;
    double score = 0;
  };
  std::vector<Variant> variants;  // two for each cost
  // Whether some variant puts the drive on the other side of the reference.
  bool rank_changes = false;

  // ci_high / ci_low: two scores that lie less far apart have intervals that overlap. Absent for a
  // single cycle, as what follows from it.
  std::optional<double> interval_ratio() const;
  std::optional<bool> interval_too_wide() const;
};
// An interval whose ends lie further apart says nothing: it hides even a drive at which one of the
// costs, the one of least weight, is twice as high.
double WidestIntervalRatio();
// `cycles` holds at least one.
Score ComputeScore(std::span<const SegmentCosts> reference, const Cycles& cycles);

// The geometric mean over cycles: a measured drive as the reference.
std::vector<SegmentCosts> ReferenceOf(const Cycles& cycles);

// Two drives on the same trace, rule and state.
enum class Verdict { kTie, kFirstFaster, kSecondFaster, kTooFewCycles };
struct Comparison {
  Verdict verdict = Verdict::kTooFewCycles;
  // By how much the first scores higher, as ratio of S, with its 95 % interval by Welch.
  double ratio = 1;
  double ratio_low = 1;
  double ratio_high = 1;
};
// The logarithms are of scores against the same reference.
Comparison CompareScores(std::span<const double> first_log_scores,
                         std::span<const double> second_log_scores);

// Seconds that somebody waited for storage in a workday of 8 h of such work: `wait_ns` of the
// recording's `recording_ns` > 0.
double WaitSecondsPerWorkday(double wait_ns, int64_t recording_ns);

}  // namespace blktape
