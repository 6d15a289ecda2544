#include "report/score_report.h"

namespace blktape {

std::optional<double> ScoreReport::storage_wait_s_per_workday() const {
  if (waits_ns.empty() || recording_ns <= 0) return std::nullopt;
  double sum_ns = 0;
  for (const int64_t wait_ns : waits_ns) sum_ns += static_cast<double>(wait_ns);
  return WaitSecondsPerWorkday(sum_ns / static_cast<double>(waits_ns.size()), recording_ns);
}

std::optional<double> ScoreReport::score_with_repeated() const {
  if (cycles.empty() || repeated.empty()) return std::nullopt;
  Cycles all = cycles;
  for (const RepeatedCycle& one : repeated) all.push_back(one.costs);
  return ComputeScore(reference_costs, all).score;
}

}  // namespace blktape
