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
#include "replay/progress_meter.h"
#include "replay/replay_options.h"
#include "replay/target/target.h"

namespace blktape {

// Everything that a replay needs before its first I/O: opened and suitable targets, a checked
// footprint, the named rule. Nothing has been written yet.
struct ReplaySetup {
  std::unique_ptr<RecordStream> stream;
  // Empty for engines that need no targets.
  std::vector<std::unique_ptr<Target>> targets;
  std::vector<proto::Device> descriptions;  // of the targets or their substitutes
  PlanOptions plan;
  // The plan as named in the result, without the engine and the trace's hash.
  proto::ReplayPlan named;
  std::string engine_reason;        // why "auto" chose this engine, with figures
  std::optional<uint64_t> records;  // of the stream
  std::optional<int64_t> span_ns;
};

// Prepares a replay. kInvalidArgument: the options contradict each other. kFailedPrecondition: the
// target or the trace does not allow it; the message says what to do. kCancelled when `stop`
// becomes true.
Result<ReplaySetup> SetUpReplay(const ReplayOptions& options, const std::atomic<bool>& stop);

// When the I/Os of this replay are expected by the recording's own times. Reads the whole trace.
// kCancelled when `stop` becomes true.
Result<ExpectedTimes> FindExpectedTimes(const ReplayOptions& options, const PlanOptions& plan,
                                        const std::atomic<bool>& stop);

// Puts the trace's SHA-256 into `named`. Reads the whole trace, so a preview does not call this.
Status HashTrace(const ReplayOptions& options, ReplaySetup* setup);

// "timed x1", "timed x4 idle-cap 25ms", "closed", "closed idle-cap 25ms", "max order", "max order
// think=keep", "max qd=32".
std::string CanonicalRule(const ReplayOptions& options);

// The address range that the records of these options touch: from the trace's summary if possible,
// else from a pass over the trace.
Result<Footprint> FindFootprint(const ReplayOptions& options, const std::atomic<bool>& stop);

}  // namespace blktape
