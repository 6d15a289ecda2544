#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/trace.pb.h"
#include "replay/plan/footprint.h"
#include "replay/plan/plan.h"
#include "replay/plan/record_stream.h"
#include "replay/replay_options.h"
#include "replay/target/target.h"

namespace blktape {

// Everything a replay needs before its first I/O: targets opened and found suitable, the footprint
// checked, the rule named. Nothing has been written.
struct ReplaySetup {
  std::unique_ptr<RecordStream> stream;
  // Empty for engines that need none.
  std::vector<std::unique_ptr<Target>> targets;
  std::vector<proto::Device> descriptions;  // of the targets, or of what stands for them
  PlanOptions plan;
  // What the result will name, but for the engine and the trace's hash.
  proto::ReplayPlan named;
  std::string engine_reason;        // why "auto" took the engine it took, with figures
  std::optional<uint64_t> records;  // of the stream
  std::optional<int64_t> span_ns;
};

// kInvalidArgument: the options contradict each other. kFailedPrecondition: the target or the trace
// forbids it, with the way out. kCancelled when `stop` becomes true.
Result<ReplaySetup> SetUpReplay(const ReplayOptions& options, const std::atomic<bool>& stop);

// Puts the trace's SHA-256 into `named`: reads all of it, which a look at a long one is spared.
Status HashTrace(const ReplayOptions& options, ReplaySetup* setup);

// "timed x1", "timed x4 idle-cap 25ms", "closed", "closed idle-cap 25ms", "max order", "max order
// think=keep", "max qd=32".
std::string CanonicalRule(const ReplayOptions& options);

// What the stream of these options touches, from the trace's summary where that tells, else by a
// pass over it.
Result<Footprint> FindFootprint(const ReplayOptions& options, const std::atomic<bool>& stop);

}  // namespace blktape
