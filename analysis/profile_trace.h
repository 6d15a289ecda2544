#pragma once

#include <string>

#include "analysis/profile.h"
#include "base/status.h"

namespace blktape {

// The profile of the trace at `path`. Only the frames are read that may hold a part of the window
// and of what is chosen, where the trace has an index; of what they lost, and of damage elsewhere,
// the summary tells. kInvalidArgument: `from_ns` is beyond its end, or what `choose` says.
Result<Profile> ProfileTrace(const std::string& path, const ProfileOptions& options = {});

}  // namespace blktape
