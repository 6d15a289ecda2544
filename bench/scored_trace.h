#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "analysis/segments.h"
#include "base/status.h"
#include "bench/piece.h"

namespace blktape {

// What a campaign knows of its piece of a trace before it opens the target.
struct ScoredTrace {
  std::string hash;  // SHA-256 of the trace file
  Segmentation segmentation;
  uint64_t lost_events = 0;
  int64_t recording_ns = 0;
  bool ordered = true;  // it tells completions
};

// Four passes. kFailedPrecondition where the piece gives no score: it lost events and that is not
// accepted, too few of its I/Os are waited for, or it tells no completions and is not to be run in
// an open loop. kCancelled when `stop` becomes true.
Result<std::shared_ptr<const ScoredTrace>> ReadScoredTrace(const TracePiece& piece, bool open_loop,
                                                           bool loss_accepted,
                                                           const std::atomic<bool>& stop);

}  // namespace blktape
