#pragma once

#include <cstdint>

#include "analysis/invalid_reason.h"
#include "analysis/profile.h"
#include "analysis/run_costs.h"
#include "analysis/segments.h"
#include "format/trace.pb.h"

namespace blktape {

// The limits of docs/score.md, "A run is invalid when".
// Open loop: of all I/Os.
inline constexpr int64_t kLateP999LimitNs = 100 * kNanosPerMicro;
inline constexpr double kLateShareLimit = 0.001;  // over 1 ms late
// Closed loop: what a late host adds to the foreground wait. It is in no cost, but the drive rests
// meanwhile.
inline constexpr double kHostWaitLimit = 0.10;
inline constexpr double kOwnCostLimit = 0.05;  // of the drive's median service time
inline constexpr int64_t kIssuerBusyLimitPpm = 900'000;

// No reasons: valid. All that is needed lies in the traces themselves.

// The recording (rule 2). Lost events that the user accepted by name are no reason.
InvalidReasons WhyTraceInvalid(const Profile& recording, bool loss_accepted);

// What kind of run, which decides what lateness means in it: in an open loop a late I/O has arrived
// at another load; in a closed loop it only lengthens the wait, by a known time; at max speed
// nothing is due before it is issued.
enum class RunKind { kOpen, kClosed, kMax };

// One replay of it (rules 1, 3, 4, 5).
InvalidReasons WhyRunInvalid(const Segmentation& segmentation, const RunCosts& run, RunKind kind);

// Whether all of these reasons are of rules 3 and 5: what the host or somebody else did to the run,
// told by the clock and by the target's own statistics, not by how long the I/Os took. True also
// for none.
bool SpoiledFromOutside(const InvalidReasons& reasons);

// Whether a target or the engine changed between two replays (rule 6).
InvalidReasons WhyTargetsDiffer(const proto::Header& manifest, const proto::Header& run);

}  // namespace blktape
