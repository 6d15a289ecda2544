#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/trace.pb.h"
#include "replay/replay_options.h"

namespace blktape {

struct ReplayProgress {
  double fraction = 0;  // 0 if the length is not known
  int64_t elapsed_ns = 0;
  uint64_t issued = 0;
  uint64_t completed = 0;
  uint64_t errors = 0;
  uint32_t in_flight = 0;
  uint64_t bytes = 0;
  int64_t lateness_max_ns = 0;  // since the last report
};

// Runs a replay and blocks until it is done. When `stop` becomes true, it waits for the I/Os in
// flight and leaves a valid partial result (outcome.stopped_early). `progress` may be empty; it is
// called about twice a second on the calling thread, which issues no I/O itself. The result trace
// has one record per issued I/O in the order of the plan, with `ordinal` = its index among the
// trace's records. With the simulated engine time is virtual: results are deterministic, and the
// run lasts only as long as the computation.
Result<proto::ReplayOutcome> RunReplay(const ReplayOptions& options, const std::atomic<bool>& stop,
                                       const std::function<void(const ReplayProgress&)>& progress);

// What RunReplay would do, found without issuing any I/O.
struct ReplayPreview {
  std::string rule;
  std::vector<proto::Device> targets;
  std::map<std::string, std::string> identities;  // for the options of the following run
  std::vector<std::string> settings;              // queue settings during the run
  std::vector<std::string> shared;  // recorded devices whose addresses overlap on one target
  uint64_t planned = 0;
  uint64_t planned_bytes = 0;
  std::map<std::string, uint64_t> planned_by_op;
  std::map<std::string, uint64_t> skipped;
  std::map<std::string, uint64_t> emulated;
  uint64_t remapped = 0;
  uint64_t widened = 0;
  int64_t duration_ns = 0;  // of a timed replay
  // From the first arrival to the last of what is replayed, in the recording, all passes together;
  // absent where the trace does not tell, or the passes have no end. Known also without `whole`.
  std::optional<int64_t> recorded_ns;
  int64_t idle_cut_ns = 0;
};

// Opens the targets, which may be refused, and checks the footprint. If `whole`, also plans every
// record; otherwise counts and durations stay 0.
Result<ReplayPreview> PreviewReplay(const ReplayOptions& options, bool whole,
                                    const std::atomic<bool>& stop);

// The end of the trace's address range in bytes: the minimum size of a target.
Result<uint64_t> FootprintEndBytes(const ReplayOptions& options, const std::atomic<bool>& stop);

}  // namespace blktape
