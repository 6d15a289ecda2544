#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/profile.h"
#include "analysis/segments.h"
#include "base/status.h"
#include "format/io_record.h"

namespace blktape {

// The three costs of docs/score.md, in ns, lower is better.
enum class Cost { kResponse = 0, kTail = 1, kWork = 2 };
inline constexpr int kCosts = 3;
using SegmentCosts = std::array<double, kCosts>;
// "response", "tail", "work".
const char* CostName(Cost cost);
// Its key in JSON: "response_ns", "tail_ns", "busy_ns".
const char* CostKey(Cost cost);

inline constexpr uint64_t kClassCounts = 200;  // I/Os a class needs in a segment to count
// The mean of the worst of so many foreground I/Os each: 1 %.
inline constexpr uint64_t kTailOneOf = 100;

// What one replay cost, segment by segment of the trace that was replayed. Response and tail have a
// meaning in a timed run only, work in a run at max speed only; all are computed of any run. A cost
// is absent where no I/O of the segment that it looks at has both its times.
struct RunCosts {
  struct OfSegment {
    std::optional<double> response_ns;  // x1
    std::optional<double> tail_ns;      // x2
    std::optional<double> busy_ns;      // x3
  };
  std::vector<OfSegment> segments;
  int64_t wait_ns = 0;  // union of all foreground [queue, complete]
  uint64_t records = 0;
  uint64_t outside = 0;     // records whose ordinal is absent or beyond the trace
  uint64_t incomplete = 0;  // records without due or completion time, in no cost
  // Intervals so far out of order that a part of them is in no wait_ns or busy_ns, which are then
  // too small.
  uint64_t cut = 0;
  Profile profile;  // of the result trace as a whole
};

// Reads the result of a replay, in the order of its plan, in one pass. Memory: that of a profile
// and one number per 100 foreground I/Os. Not thread-safe.
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

// The costs of one cycle: response and tail of `timed`, work of `max`. kDataLoss names the segment
// and the cost that could not be measured. A cost below 1 ns counts as 1 ns.
Result<std::vector<SegmentCosts>> CycleCosts(const RunCosts& timed, const RunCosts& max);

}  // namespace blktape
