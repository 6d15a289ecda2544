#include "analysis/score.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace blktape {
namespace {

std::vector<double> LogScores(std::span<const SegmentCosts> reference, const Cycles& cycles,
                              const CostWeights& weights, const SampleDesign* design) {
  std::vector<double> logs;
  for (const std::vector<SegmentCosts>& cycle : cycles) {
    logs.push_back(design != nullptr
                       ? EstimateLogScore(*design, reference, cycle, weights).log_score
                       : LogScore(reference, cycle, weights));
  }
  return logs;
}

// The arithmetic mean over cycles: what the draw of windows puts off, without the runs' own spread.
std::vector<SegmentCosts> MeanCosts(const Cycles& cycles) {
  std::vector<SegmentCosts> mean(cycles.front().size(), SegmentCosts{});
  for (const std::vector<SegmentCosts>& cycle : cycles) {
    for (size_t k = 0; k < mean.size(); ++k) {
      for (size_t m = 0; m < kCosts; ++m) {
        mean[k][m] += cycle[k][m] / static_cast<double>(cycles.size());
      }
    }
  }
  return mean;
}

// Windows of each stratum, by index.
std::vector<std::vector<size_t>> WindowsOf(const SampleDesign& design) {
  std::vector<std::vector<size_t>> windows(design.strata.size());
  for (size_t i = 0; i < design.stratum_of.size(); ++i) windows[design.stratum_of[i]].push_back(i);
  for (const std::vector<size_t>& one : windows) BLKTAPE_CHECK(!one.empty());
  return windows;
}

SegmentCosts SumOf(const std::vector<size_t>& windows, std::span<const SegmentCosts> costs) {
  SegmentCosts sum{};
  for (const size_t window : windows) {
    for (size_t m = 0; m < kCosts; ++m) sum[m] += costs[window][m];
  }
  return sum;
}

// ln(S / 1000) of one segment.
double LogOf(const SegmentCosts& reference, const SegmentCosts& drive, const CostWeights& weights) {
  double sum = 0;
  for (size_t m = 0; m < kCosts; ++m) sum += weights[m] * std::log(reference[m] / drive[m]);
  return sum;
}

double FromLog(double log_score) { return kReferenceScore * std::exp(log_score); }

// The sign of a score against the reference, equality told apart.
int SideOf(double score) { return (score > kReferenceScore) - (score < kReferenceScore); }

}  // namespace

double LogScore(std::span<const SegmentCosts> reference, std::span<const SegmentCosts> drive,
                const CostWeights& weights) {
  BLKTAPE_CHECK(!reference.empty() && reference.size() == drive.size());
  double sum = 0;
  for (size_t k = 0; k < reference.size(); ++k) {
    for (size_t m = 0; m < kCosts; ++m) {
      BLKTAPE_CHECK(reference[k][m] > 0 && drive[k][m] > 0);
      sum += weights[m] * std::log(reference[k][m] / drive[k][m]);
    }
  }
  return sum / static_cast<double>(reference.size());
}

double WidestIntervalRatio() {
  return std::exp2(*std::min_element(kWeights.begin(), kWeights.end()));
}

std::optional<double> Score::interval_ratio() const {
  if (!ci_low || !ci_high) return std::nullopt;
  return *ci_high / *ci_low;
}

std::optional<bool> Score::interval_too_wide() const {
  const std::optional<double> ratio = interval_ratio();
  if (!ratio) return std::nullopt;
  return *ratio > WidestIntervalRatio();
}

bool Score::mostly_of_the_draw() const {
  if (!sampling_sd_ln) return false;
  const std::optional<MeanVariance> runs = VarianceOfMean(log_scores);
  return !runs || *sampling_sd_ln * *sampling_sd_ln > runs->variance;
}

SampledLogScore EstimateLogScore(const SampleDesign& design,
                                 std::span<const SegmentCosts> reference,
                                 std::span<const SegmentCosts> drive, const CostWeights& weights) {
  BLKTAPE_CHECK(reference.size() == design.stratum_of.size() && drive.size() == reference.size());
  const std::vector<std::vector<size_t>> windows = WindowsOf(design);
  // The totals of each segment, estimated stratum by stratum.
  std::vector<SegmentCosts> reference_total(design.segments, SegmentCosts{});
  std::vector<SegmentCosts> drive_total(design.segments, SegmentCosts{});
  std::vector<SegmentCosts> reference_sum(windows.size());
  std::vector<SegmentCosts> drive_sum(windows.size());
  for (size_t h = 0; h < windows.size(); ++h) {
    reference_sum[h] = SumOf(windows[h], reference);
    drive_sum[h] = SumOf(windows[h], drive);
    const double each =
        static_cast<double>(design.strata[h].windows) / static_cast<double>(windows[h].size());
    for (size_t m = 0; m < kCosts; ++m) {
      reference_total[design.strata[h].segment][m] += each * reference_sum[h][m];
      drive_total[design.strata[h].segment][m] += each * drive_sum[h][m];
    }
  }
  SampledLogScore result;
  const auto segments = static_cast<double>(design.segments);
  result.log_score = LogScore(reference_total, drive_total, weights);
  // The jackknife: each window left out in turn, which tells how far the draw puts the logarithm
  // off, and to which side. Where a stratum was drawn whole, nothing is left to chance.
  size_t strata_left_to_chance = 0;
  double bias = 0;
  for (size_t h = 0; h < windows.size(); ++h) {
    const auto drawn = static_cast<double>(windows[h].size());
    const auto count = static_cast<double>(design.strata[h].windows);
    if (drawn < 2 || drawn >= count) continue;
    const size_t k = design.strata[h].segment;
    std::vector<double> without;
    for (const size_t window : windows[h]) {
      SegmentCosts of_reference = reference_total[k];
      SegmentCosts of_drive = drive_total[k];
      for (size_t m = 0; m < kCosts; ++m) {
        const auto change = [&](double sum, double left_out) {
          return count / (drawn - 1) * (sum - left_out) - count / drawn * sum;
        };
        of_reference[m] += change(reference_sum[h][m], reference[window][m]);
        of_drive[m] += change(drive_sum[h][m], drive[window][m]);
      }
      without.push_back(LogOf(of_reference, of_drive, weights));
    }
    const double left_to_chance = 1 - drawn / count;
    double mean = 0;
    for (const double one : without) mean += one / drawn;
    double squares = 0;
    for (const double one : without) squares += (one - mean) * (one - mean);
    const double variance = left_to_chance * (drawn - 1) / drawn * squares / (segments * segments);
    result.sampling.variance += variance;
    ++strata_left_to_chance;
    bias += left_to_chance * (drawn - 1) *
            (mean - LogOf(reference_total[k], drive_total[k], weights)) / segments;
  }
  result.log_score -= bias;
  result.sampling.degrees =
      std::max(static_cast<double>(strata_left_to_chance) / kSamplingDegreesOneOf, 1.0);
  return result;
}

double EstimateTotal(const SampleDesign& design, std::span<const SegmentCosts> costs, Cost cost) {
  const std::vector<std::vector<size_t>> windows = WindowsOf(design);
  double total = 0;
  for (size_t h = 0; h < windows.size(); ++h) {
    total += static_cast<double>(design.strata[h].windows) /
             static_cast<double>(windows[h].size()) *
             SumOf(windows[h], costs)[static_cast<size_t>(cost)];
  }
  return total;
}

Score ComputeScore(std::span<const SegmentCosts> reference, const Cycles& cycles,
                   size_t first_stage, const SampleDesign* design) {
  BLKTAPE_CHECK(!cycles.empty());
  Score result;
  result.log_scores = LogScores(reference, cycles, kWeights, design);
  const bool staged = first_stage >= 2 && first_stage <= cycles.size();
  MeanInterval interval =
      staged ? SteinInterval95(result.log_scores, first_stage) : MeanInterval95(result.log_scores);
  if (design != nullptr) {
    const MeanVariance sampling =
        EstimateLogScore(*design, reference, MeanCosts(cycles), kWeights).sampling;
    result.sampling_sd_ln = std::sqrt(sampling.variance);
    const std::span<const double> logs(result.log_scores);
    const MeanVariance runs =
        VarianceOfMean(staged ? logs.first(first_stage) : logs).value_or(MeanVariance{0, 1});
    const double share =
        staged ? static_cast<double>(first_stage) / static_cast<double>(cycles.size()) : 1;
    interval.half_width = HalfWidth95({runs.variance * share, runs.degrees}, sampling);
  }
  result.score = FromLog(interval.mean);
  result.half_width_ln = interval.half_width;
  if (interval.half_width) {
    result.ci_low = FromLog(interval.mean - *interval.half_width);
    result.ci_high = FromLog(interval.mean + *interval.half_width);
  }
  const std::optional<Trend> trend = FitTrend(result.log_scores);
  if (trend && trend->significant && std::abs(trend->change) >= std::log1p(kTrendFrom)) {
    result.trend_ln = trend->change;
  }
  for (int m = 0; m < kCosts; ++m) {
    for (const double factor : {0.5, 1.5}) {
      CostWeights weights = kWeights;
      weights[static_cast<size_t>(m)] *= factor;
      double sum = 0;
      for (const double weight : weights) sum += weight;
      for (double& weight : weights) weight /= sum;
      const std::vector<double> logs = LogScores(reference, cycles, weights, design);
      const double score = FromLog(MeanInterval95(logs).mean);
      result.variants.push_back({static_cast<Cost>(m), factor, score});
      if (SideOf(score) != SideOf(result.score)) result.rank_changes = true;
    }
  }
  return result;
}

std::vector<SegmentCosts> ReferenceOf(const Cycles& cycles) {
  BLKTAPE_CHECK(!cycles.empty());
  std::vector<SegmentCosts> reference(cycles.front().size(), SegmentCosts{});
  for (size_t k = 0; k < reference.size(); ++k) {
    for (size_t m = 0; m < kCosts; ++m) {
      double sum = 0;
      for (const std::vector<SegmentCosts>& cycle : cycles) sum += std::log(cycle[k][m]);
      reference[k][m] = std::exp(sum / static_cast<double>(cycles.size()));
    }
  }
  return reference;
}

Comparison ComparisonOf(double difference, double half_width) {
  const double low = difference - half_width;
  const double high = difference + half_width;
  Comparison comparison{.verdict = Verdict::kTie,
                        .ratio = std::exp(difference),
                        .ratio_low = std::exp(low),
                        .ratio_high = std::exp(high)};
  // "By 2 %" is of the slower one, whichever that is, so that swapping the drives swaps the
  // verdict.
  const double least = std::log1p(kFasterByAtLeast);
  if (low > 0 && difference >= least) {
    comparison.verdict = Verdict::kFirstFaster;
  } else if (high < 0 && -difference >= least) {
    comparison.verdict = Verdict::kSecondFaster;
  }
  return comparison;
}

Comparison CompareScores(std::span<const double> first_log_scores,
                         std::span<const double> second_log_scores) {
  const auto interval = WelchInterval95(first_log_scores, second_log_scores);
  if (!interval) return {};
  return ComparisonOf(interval->difference, interval->high - interval->difference);
}

double WaitSecondsPerWorkday(double wait_ns, int64_t recording_ns) {
  BLKTAPE_CHECK(recording_ns > 0);
  return wait_ns / static_cast<double>(recording_ns) * static_cast<double>(kWorkdayNs) / 1e9;
}

}  // namespace blktape
