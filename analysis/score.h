#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/run_costs.h"
#include "analysis/statistics.h"

namespace blktape {

// Definition and constants: docs/score.md. The weights carry this number.
inline constexpr int kScoreVersion = 2;
inline constexpr double kReferenceScore = 1000.0;
using CostWeights = std::array<double, kCosts>;
inline constexpr CostWeights kWeights = {0.70, 0.30};  // wait, work
// Fewer foreground I/Os than this are no ground for a score.
inline constexpr uint64_t kLeastForeground = 200;
// So many cycles of a published score are taken that the half width of ln S becomes at most this.
inline constexpr double kHalfWidthGoal = 0.015;
inline constexpr double kFasterByAtLeast = 0.02;
// A trend over the cycles is told only from this change of the score on.
inline constexpr double kTrendFrom = 0.02;
inline constexpr int64_t kWorkdayNs = 8 * 3600 * kNanosPerSecond;

// The costs of one drive over one trace: [cycle][segment][cost]. Of a sample:
// [cycle][window][cost].
using Cycles = std::vector<std::vector<SegmentCosts>>;

// Degrees of freedom of the draw: one for so many strata that are left to chance. A few of them
// make up most of the error, and which they are differs from drive to drive (docs/decisions.md).
inline constexpr double kSamplingDegreesOneOf = 40;

// How the windows of a sampled score were drawn: from each stratum at random, without repeats. A
// stratum is a part of one segment. docs/score.md, "Sample".
struct SampleDesign {
  struct Stratum {
    size_t segment = 0;
    uint64_t windows = 0;  // N_h: how many it holds, of which at least one was drawn, two if it can
  };
  size_t segments = 0;
  std::vector<Stratum> strata;
  std::vector<size_t> stratum_of;  // of each window that was drawn
};

// An estimate of ln(S / 1000) of the whole from the costs of the windows, and how far the draw
// alone puts it off.
struct SampledLogScore {
  double log_score = 0;
  MeanVariance sampling;
};
SampledLogScore EstimateLogScore(const SampleDesign& design,
                                 std::span<const SegmentCosts> reference,
                                 std::span<const SegmentCosts> drive, const CostWeights& weights);
// The sum of one cost over the whole, by the means of the strata.
double EstimateTotal(const SampleDesign& design, std::span<const SegmentCosts> costs, Cost cost);

// ln(S / 1000) of one cycle against a reference, both with the same segments.
double LogScore(std::span<const SegmentCosts> reference, std::span<const SegmentCosts> drive,
                const CostWeights& weights = kWeights);

struct Score {
  double score = 0;
  // 95 %, run to run, not unit to unit; of a sample also the sampling error. Absent for a single
  // cycle that is no sample.
  std::optional<double> ci_low, ci_high;
  std::optional<double> half_width_ln;
  std::optional<double> sampling_sd_ln;  // of a sample: how far the draw alone puts ln S off
  std::vector<double> log_scores;        // ln(S / 1000), one a cycle
  // By how much ln S changes from the first cycle to the last, by the line fitted to the cycles:
  // only where that line's slope is no chance (95 %) and the change at least 2 %.
  std::optional<double> trend_ln;
  // S with one weight at half or one and a half times its value, all renormalised to a sum of 1.
  struct Variant {
    Cost cost = Cost::kWait;
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
  // Whether the draw of a sample puts ln S further off than the runs do: then more windows narrow
  // the interval, and more cycles hardly do.
  bool mostly_of_the_draw() const;
};
// An interval whose ends lie further apart says nothing: it hides even a drive at which one of the
// costs, the one of least weight, is twice as high.
double WidestIntervalRatio();
// `cycles` holds at least one. `first_stage`: of a published score (Stein's two stages), so many
// cycles alone tell the spread; 0: all do. `design`: of a sampled score, else null.
Score ComputeScore(std::span<const SegmentCosts> reference, const Cycles& cycles,
                   size_t first_stage = 0, const SampleDesign* design = nullptr);

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
// The verdict on two drives whose ln S differ by so much, first minus second, +- half_width.
Comparison ComparisonOf(double difference, double half_width);
// The logarithms are of scores against the same reference.
Comparison CompareScores(std::span<const double> first_log_scores,
                         std::span<const double> second_log_scores);

// Seconds that somebody waited for storage in a workday of 8 h of such work: `wait_ns` of the
// recording's `recording_ns` > 0.
double WaitSecondsPerWorkday(double wait_ns, int64_t recording_ns);

}  // namespace blktape
