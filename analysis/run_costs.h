#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/foreground.h"
#include "analysis/latency_histogram.h"
#include "analysis/profile.h"
#include "analysis/run_series.h"
#include "analysis/segments.h"
#include "base/status.h"
#include "format/io_record.h"

namespace blktape {

// The two costs of docs/score.md, in ns, lower is better.
enum class Cost { kWait = 0, kWork = 1 };
inline constexpr int kCosts = 2;
using SegmentCosts = std::array<double, kCosts>;
// "wait", "work".
const char* CostName(Cost cost);
// Its key in JSON: "wait_ns", "busy_ns".
const char* CostKey(Cost cost);

// Of the worst of so many I/Os of a class each: 1 %.
inline constexpr uint64_t kTailOneOf = 100;

// How long the I/Os of one class took: from due to complete, without the host's lateness. Explains
// a score, is not in it.
struct ClassResponse {
  uint64_t ios = 0;
  std::optional<double> mean_ns;  // absent where there are none
  std::optional<double> tail_ns;  // mean of the worst ceil(ios / kTailOneOf)
};
using ClassResponses = std::array<ClassResponse, kWaitClasses>;
// The same responses as samples.
using ClassLatencies = std::array<LatencyHistogram, kWaitClasses>;

// What one replay cost, segment by segment of the trace that was replayed. Wait and response have a
// meaning where I/Os have a due time of their own, work in a run at max speed; all are computed of
// any run. A cost is absent where no I/O of the segment that it looks at has both its times.
struct RunCosts {
  struct OfSegment {
    // x1: union of its foreground [due + the host's lateness, complete]
    std::optional<double> wait_ns;
    std::optional<double> busy_ns;  // x2: union of all its [issue, complete]
    int64_t span_ns = 0;            // from its first due time to its last completion
  };
  std::vector<OfSegment> segments;
  ClassResponses responses;  // of all segments together
  ClassLatencies latencies;  // likewise
  RunSeries series;          // likewise
  int64_t wait_ns = 0;       // union of all foreground [due, complete]
  int64_t host_wait_ns = 0;  // the part of it that is only for the host's lateness
  uint64_t records = 0;
  uint64_t outside = 0;     // records whose ordinal is absent or beyond the trace
  uint64_t incomplete = 0;  // records without due or completion time, in no cost
  // Intervals so far out of order that a part of them is in no wait_ns or busy_ns, or not in the
  // host's part, which are then too small.
  uint64_t cut = 0;
  Profile profile;  // of the result trace as a whole
};

// Reads the result of a replay, in the order of its plan, in one pass. Memory: that of a profile,
// some MiB to put I/Os into order, and one number per 100 foreground I/Os. Not thread-safe.
class RunCostsBuilder : public TraceObserver {
 public:
  // `segmentation` must outlive the builder.
  explicit RunCostsBuilder(const Segmentation* segmentation);
  ~RunCostsBuilder() override;

  void Add(const IoRecord& io);
  void OnLoss(const proto::Loss& loss) override;
  RunCosts Finish(const proto::Header& header, const std::optional<proto::Summary>& summary);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Of the result trace at `path`.
Result<RunCosts> MeasureRun(const std::string& path, const Segmentation& segmentation);

// The costs of one cycle: wait of `waited`, work of `max`. kDataLoss names the segment and the cost
// that could not be measured. A cost below 1 ns counts as 1 ns.
Result<std::vector<SegmentCosts>> CycleCosts(const RunCosts& waited, const RunCosts& max);

}  // namespace blktape
