#pragma once

#include <string>
#include <string_view>

#include "analysis/latency_histogram.h"
#include "analysis/profile.h"
#include "report/text_table.h"

namespace blktape {

// What `blktape analyze` prints: within the look's columns, 79 where nobody says, units in every
// column. `name` is the trace's; no name can steer a terminal, so it may be printed as it is.
// A report never computes: it shows what the profile holds, of processes those with most bytes.
inline constexpr size_t kProcessRows = 10;
std::string ProfileText(const Profile& profile, std::string_view name,
                        size_t most_processes = kProcessRows, const TextLook& look = {});

// "mean, p50, p95, p99, p99.9, max" as a table row of 79 columns at most, beginning with `label`;
// "n/a (n=37)" where samples lack.
std::string LatencyRow(std::string_view label, const LatencyHistogram& histogram);
// The heading of such rows.
std::string LatencyHeading(std::string_view title);

}  // namespace blktape
