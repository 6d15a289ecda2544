#pragma once

#include "analysis/latency_histogram.h"
#include "analysis/profile.h"
#include "base/json.h"
#include "format/trace.pb.h"

namespace blktape {

// The JSON of `blktape analyze --json`; every key is defined in docs/metrics.md and stays. A report
// never computes: it shows what the profile holds.
Json ProfileJson(const Profile& profile);

// {"count", "mean", "min", "p50", "p95", "p99", "p999", "p9999", "max", "exact"}: ns, nearest rank
// whatever the count; null without samples.
Json LatencyJson(const LatencyHistogram& histogram);

// `host_parts`: by target, what of its I/Os is the host's (docs/score.md).
Json HostPartsJson(const proto::ReplayOutcome& outcome);
// Of commits that threads of the recording asked for; all 0 where there are none.
Json CommitsJson(const proto::ReplayOutcome& outcome);

}  // namespace blktape
