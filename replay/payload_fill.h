#pragma once

#include "replay/issue/feed.h"
#include "replay/replay_options.h"

namespace blktape {

// Returns the function that fills the buffers of a replay's writes according to its options.
PayloadFill MakePayloadFill(const ReplayOptions& options);

}  // namespace blktape
