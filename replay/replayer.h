#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/trace.pb.h"

namespace blktape {

enum class TimingRule {
  kTimed,       // due = start + (arrival - first) / speed
  kMaxOrder,    // as soon as all that had completed before it was queued in the recording has
                // completed
  kQueueDepth,  // as fast as goes with at most queue_depth in flight
};

// What to replay and how. Field by field what `blktape replay --help` says.
struct ReplayOptions {
  std::string trace_path;
  // Device of the trace ("nvme0n1", or "" for the only one or all on one target) to path of the
  // target.
  struct Mapping {
    std::string device;
    std::string target_path;
  };
  std::vector<Mapping> mappings;
  TimingRule rule = TimingRule::kTimed;
  double speed = 1.0;
  std::optional<int64_t> idle_cap_ns;
  uint32_t queue_depth = 0;      // kQueueDepth
  bool keep_think_time = false;  // kMaxOrder and kQueueDepth
  std::string engine = "auto";   // auto, io_uring, libaio, simulated, null
  std::string result_path;       // empty: no result trace is kept
  bool overwrite = false;
  bool skip_writes = false;
  std::string unsupported = "fail";  // fail, skip, emulate
  std::string state = "as-is";       // copied into the result
  uint32_t cycle = 0;                // likewise
};

struct ReplayProgress {
  double fraction = 0;
  int64_t elapsed_ns = 0;
  uint64_t issued = 0;
  uint64_t completed = 0;
  uint64_t errors = 0;
  uint32_t in_flight = 0;
  uint64_t bytes = 0;
  int64_t lateness_max_ns = 0;  // since the last report
};

// Replays. Blocks until done; `stop` set to true drains and leaves a valid partial result
// (outcome.stopped_early). `progress` is called about twice a second on a thread of its own, may be
// empty. The result trace holds one record per issued I/O in the order of the plan, with `ordinal`
// = its index among the trace's records.
Result<proto::ReplayOutcome> RunReplay(const ReplayOptions& options, const std::atomic<bool>& stop,
                                       const std::function<void(const ReplayProgress&)>& progress);

}  // namespace blktape
