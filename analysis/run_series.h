#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/latency_sketch.h"
#include "analysis/step_series.h"

namespace blktape {

// What the drive did over the time of one replay: docs/score.md, "Series". Counted from the first
// due time.
struct RunSeries {
  struct Step {
    double ios_per_s = 0;    // data requests, by completion
    double bytes_per_s = 0;  // of these
    double depth_mean = 0;   // data requests at the drive
    // Responses of I/Os that somebody waits for, by completion; absent below 100 and 1 of them. The
    // percentile is off by at most LatencySketch::kRelativeErrorBound.
    std::optional<int64_t> p99_ns, max_ns;
  };
  int64_t step_ns = 0;
  std::vector<Step> steps;
};

// Memory: at most 180 KiB. Not thread-safe.
class RunSeriesBuilder {
 public:
  // So many at most, and where a run is longer than so many ms, more than half of it.
  static constexpr size_t kMostSteps = 120;

  // A data request at the drive from `issue_ns` to `complete_ns`.
  void AddRequest(int64_t issue_ns, int64_t complete_ns, uint64_t bytes);
  // An I/O that somebody waited for, for `response_ns`.
  void AddResponse(int64_t complete_ns, int64_t response_ns);

  // A step at the end in which nothing completed is not there.
  RunSeries Finish();

 private:
  struct Counts {
    uint64_t ios = 0;
    uint64_t bytes = 0;
    LatencySketch responses;
    Counts& operator+=(const Counts& other);
  };
  static constexpr int64_t kFirstStepNs = 1'000'000;

  StepSeries<Counts> counts_{kMostSteps, kFirstStepNs};
  SpanSeries depth_{kMostSteps, kFirstStepNs};
};

}  // namespace blktape
