#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/latency_histogram.h"
#include "base/status.h"
#include "format/trace.pb.h"
#include "replay/plan/generator.h"
#include "replay/replay_options.h"

namespace blktape {

// The classic synthetic tests of a drive, each named by its parameters, issued by the replayer.

// What writes carry (see PayloadOptions of replay/outcome/payload.h).
struct CornerPayload {
  uint32_t compressible_percent = 0;
  uint32_t dedupe_percent = 0;
  bool repeat = false;  // one repeated byte
};

// One step of a group of tests.
struct CornerStep {
  enum class Kind {
    kMeasure,  // `workload` at `queue_depth`, for duration_ns or until its end
    kFill,     // the workload's span written once in sequence; not a figure of the drive
    kDiscard,  // the workload's span discarded
    kUse,      // the span brought into the state `used` (replay/prepare/prepare.h)
    kIdle,     // left alone for duration_ns
  };
  Kind kind = Kind::kMeasure;
  std::string name = {};       // "4 KiB random write, QD 3, span 8 GiB, 4 KiB aligned, random data"
  std::string condition = {};  // what went before, where that is the point: "75 % full", "used"
  WorkloadSpec workload = {};
  uint32_t queue_depth = 1;
  CornerPayload payload = {};
  std::string data = {};  // what the payload is called, where the test is about it
  std::optional<int64_t> duration_ns = {};  // kMeasure without it ends with the workload
};

// The parameters of a kMeasure step in words, each in its place, empty where it goes without
// saying: condition, block and pattern, operation, depth, span, alignment, data, length.
std::vector<std::string> ParametersOf(const CornerStep& step);

// Names of all groups in their order: random, depth, sequential, incompressible, compressible,
// fill, state, torture.
const std::vector<std::string>& CornerGroups();

struct CornerOptions {
  // Target, engine, overwrite, queue settings, identities. The rule and the workload are ours.
  ReplayOptions replay;
  uint64_t target_bytes = 0;
  uint32_t block_bytes = 512;       // the target's logical block
  std::vector<std::string> groups;  // of CornerGroups(); empty: all
  // Times are shortened, spans are at most 1 GiB; the names of the tests say so.
  bool quick = false;
  uint64_t seed = 1;
};

struct CornerGroup {
  std::string name = {};
  std::vector<std::string> left_out = {};  // tests that this target cannot do, and why
  std::vector<CornerStep> steps = {};
};
// The tests in the order in which they run. Spans are cut to the target. kInvalidArgument for a
// target below 1 MiB or an unknown group.
Result<std::vector<CornerGroup>> PlanCorners(const CornerOptions& options);

// How long the steps take that are given a time; fills, discards and preparations come on top and
// depend on the drive: their bytes (of kUse the two fillings).
struct CornerCost {
  int64_t measured_ns = 0;
  uint64_t written_bytes = 0;
  uint32_t preparations = 0;
};
CornerCost CostOf(const std::vector<CornerGroup>& groups);

// What one kMeasure step showed.
struct CornerResult {
  std::string group = {};
  CornerStep step;
  proto::ReplayOutcome outcome = {};
  std::string engine = {};
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t bytes = 0;
  // From the first submission to the last completion, ns.
  int64_t elapsed_ns = 0;
  LatencyHistogram service_ns = LatencyHistogram();  // submission to completion
  // Bytes and I/Os completed in each step of `series_step_ns` since the first submission.
  int64_t series_step_ns = 0;
  std::vector<uint64_t> series_bytes = {};
  std::vector<uint64_t> series_ios = {};

  // Absent where nothing completed.
  std::optional<double> iops() const;
  std::optional<double> bytes_per_second() const;
};

struct CornerProgress {
  std::string text;     // "random: 4 KiB random write, QD 3, ..."
  double fraction = 0;  // of the step; 0 where its length is not known
  uint32_t step = 0;    // from 1
  uint32_t steps = 0;
  uint64_t bytes_per_second = 0;
};

// Runs them. kCancelled when `stop` becomes true: `results` holds what was finished until then.
// Fails with the first step that cannot be run.
Status RunCorners(const CornerOptions& options, const std::vector<CornerGroup>& groups,
                  const std::atomic<bool>& stop,
                  const std::function<void(const CornerProgress&)>& progress,
                  std::vector<CornerResult>* results);

}  // namespace blktape
