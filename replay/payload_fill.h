#pragma once

#include "replay/issue/feed.h"
#include "replay/replay_options.h"

namespace blktape {

// What fills the buffers of a replay's writes, as its options ask.
PayloadFill MakePayloadFill(const ReplayOptions& options);

}  // namespace blktape
