#pragma once

#include <string>

#include "analysis/profile.h"
#include "base/json.h"
#include "format/trace.pb.h"
#include "replay/replay_options.h"
#include "replay/replayer.h"

namespace blktape {

// What `blktape replay` prints after a run: `profile` is that of the result trace, which also holds
// how the replay went. Below 80 columns.
std::string ReplayText(const Profile& profile, const proto::ReplayOutcome& outcome);

// The JSON of `blktape replay --json`; keys stay. Times in ns, sizes in bytes.
Json ReplayJson(const Profile& profile, const proto::ReplayOutcome& outcome);

// What `blktape replay --dry-run` prints.
std::string PreviewText(const ReplayPreview& preview);

// How long the run will take, in a sentence with what that is based on; empty for the simulated
// engine, on which no time passes.
std::string ExpectedTimeText(const ReplayOptions& options, const ReplayPreview& preview);

// One line for a terminal, without a line feed.
std::string ProgressText(const ReplayProgress& now, const ReplayProgress& before);

// "Samsung SSD 990, serial S123, 1.8 TiB, /dev/nvme0n1": what a confirmation names.
std::string DescribeTarget(const proto::Device& device);

}  // namespace blktape
