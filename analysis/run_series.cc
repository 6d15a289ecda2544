#include "analysis/run_series.h"

#include <algorithm>

#include "analysis/latency_histogram.h"
#include "base/saturating.h"

namespace blktape {

RunSeriesBuilder::Counts& RunSeriesBuilder::Counts::operator+=(const Counts& other) {
  ios += other.ios;
  bytes = SaturatingAdd(bytes, other.bytes);
  responses += other.responses;
  return *this;
}

void RunSeriesBuilder::AddRequest(int64_t issue_ns, int64_t complete_ns, uint64_t bytes) {
  Counts& step = counts_.At(complete_ns);
  ++step.ios;
  step.bytes = SaturatingAdd(step.bytes, bytes);
  depth_.Add(issue_ns, complete_ns);
}

void RunSeriesBuilder::AddResponse(int64_t complete_ns, int64_t response_ns) {
  counts_.At(complete_ns).responses.Add(response_ns);
}

RunSeries RunSeriesBuilder::Finish() {
  const int64_t step_ns = std::max(counts_.step_ns(), depth_.step_ns());
  counts_.FoldTo(step_ns);
  depth_.FoldTo(step_ns);
  std::vector<double> depth_ns = depth_.CoveredNs();
  depth_ns.resize(counts_.steps().size());
  RunSeries series;
  series.step_ns = step_ns;
  const double step_s = static_cast<double>(step_ns) / 1e9;
  for (size_t i = 0; i < counts_.steps().size(); ++i) {
    const Counts& one = counts_.steps()[i];
    series.steps.push_back({.ios_per_s = static_cast<double>(one.ios) / step_s,
                            .bytes_per_s = static_cast<double>(one.bytes) / step_s,
                            .depth_mean = depth_ns[i] / static_cast<double>(step_ns),
                            .p99_ns = one.responses.PercentileNs(kP99),
                            .max_ns = one.responses.max_ns()});
  }
  return series;
}

}  // namespace blktape
