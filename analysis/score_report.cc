#include "analysis/score_report.h"

#include <algorithm>

namespace blktape {

std::optional<double> ScoreReport::storage_wait_ns() const {
  if (waits_ns.empty()) return std::nullopt;
  double sum_ns = 0;
  for (const int64_t wait_ns : waits_ns) sum_ns += static_cast<double>(wait_ns);
  return sum_ns / static_cast<double>(waits_ns.size());
}

std::optional<double> ScoreReport::storage_wait_s_per_workday() const {
  const std::optional<double> wait_ns = storage_wait_ns();
  if (!wait_ns || recording_ns <= 0) return std::nullopt;
  return WaitSecondsPerWorkday(*wait_ns, recording_ns);
}

ClassResponse ScoreReport::MeanResponse(WaitClass wait_class) const {
  ClassResponse mean;
  double count = 0;
  double mean_ns = 0;
  double tail_ns = 0;
  for (const ScoredRun& run : runs) {
    if (run.repeated || !run.waits) continue;
    const ClassResponse& one = run.responses[static_cast<size_t>(wait_class)];
    if (!one.mean_ns || !one.tail_ns) continue;
    mean.ios = one.ios;
    mean_ns += *one.mean_ns;
    tail_ns += *one.tail_ns;
    ++count;
  }
  if (count == 0) return mean;
  mean.mean_ns = mean_ns / count;
  mean.tail_ns = tail_ns / count;
  return mean;
}

LatencyHistogram ScoreReport::lateness() const {
  LatencyHistogram lateness;
  for (const ScoredRun& run : runs) {
    if (run.waits && !run.repeated) lateness.Merge(run.lateness);
  }
  return lateness;
}

const ScoredRun* ScoreReport::TypicalRun() const {
  std::vector<const ScoredRun*> timed;
  for (const ScoredRun& run : runs) {
    if (run.waits && !run.repeated) timed.push_back(&run);
  }
  if (timed.empty()) return nullptr;
  std::stable_sort(timed.begin(), timed.end(),
                   [](const ScoredRun* a, const ScoredRun* b) { return a->wait_ns < b->wait_ns; });
  return timed[(timed.size() - 1) / 2];
}

std::optional<double> ScoreReport::score_with_repeated() const {
  if (cycles.empty() || repeated.empty()) return std::nullopt;
  Cycles all = cycles;
  for (const RepeatedCycle& one : repeated) all.push_back(one.costs);
  return ComputeScore(reference_costs, all, 0, sample ? &sample->design : nullptr).score;
}

}  // namespace blktape
