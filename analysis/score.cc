#include "analysis/score.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace blktape {
namespace {

std::vector<double> LogScores(std::span<const SegmentCosts> reference, const Cycles& cycles,
                              const CostWeights& weights) {
  std::vector<double> logs;
  for (const std::vector<SegmentCosts>& cycle : cycles) {
    logs.push_back(LogScore(reference, cycle, weights));
  }
  return logs;
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

Score ComputeScore(std::span<const SegmentCosts> reference, const Cycles& cycles,
                   size_t first_stage) {
  BLKTAPE_CHECK(!cycles.empty());
  Score result;
  result.log_scores = LogScores(reference, cycles, kWeights);
  const bool staged = first_stage >= 2 && first_stage <= cycles.size();
  const MeanInterval interval =
      staged ? SteinInterval95(result.log_scores, first_stage) : MeanInterval95(result.log_scores);
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
      const std::vector<double> logs = LogScores(reference, cycles, weights);
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

Comparison CompareScores(std::span<const double> first_log_scores,
                         std::span<const double> second_log_scores) {
  const auto interval = WelchInterval95(first_log_scores, second_log_scores);
  Comparison comparison;
  if (!interval) return comparison;
  comparison.ratio = std::exp(interval->difference);
  comparison.ratio_low = std::exp(interval->low);
  comparison.ratio_high = std::exp(interval->high);
  comparison.verdict = Verdict::kTie;
  // "By 2 %" is of the slower one, whichever that is, so that swapping the drives swaps the
  // verdict.
  const double least = std::log1p(kFasterByAtLeast);
  if (interval->low > 0 && interval->difference >= least) {
    comparison.verdict = Verdict::kFirstFaster;
  } else if (interval->high < 0 && -interval->difference >= least) {
    comparison.verdict = Verdict::kSecondFaster;
  }
  return comparison;
}

double WaitSecondsPerWorkday(double wait_ns, int64_t recording_ns) {
  BLKTAPE_CHECK(recording_ns > 0);
  return wait_ns / static_cast<double>(recording_ns) * static_cast<double>(kWorkdayNs) / 1e9;
}

}  // namespace blktape
