#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "analysis/segments.h"
#include "base/status.h"
#include "replay/plan/record_stream.h"
#include "replay/replay_options.h"

namespace blktape {

// The part of a trace that is scored.
struct TracePiece {
  std::string trace_path;
  std::string device;  // empty: all devices
  // What arrived in [from, to) after the trace's first arrival.
  std::optional<int64_t> from_ns, to_ns;

  // "sda, from 60 s to 300 s"; empty: the whole trace.
  std::string Name() const;
};

// Makes a replay that of the piece, all of it on the target at `target_path` (empty: for an engine
// without one).
void SetPiece(const TracePiece& piece, const std::string& target_path, ReplayOptions* replay);

// The index of the piece's device in `header`; absent: all. kNotFound names the devices there are.
Result<std::optional<uint32_t>> DeviceOf(const TracePiece& piece, const proto::Header& header);

// The piece cut into segments: two passes. kFailedPrecondition if it holds no read, write or flush.
// kCancelled when `stop` becomes true.
Result<Segmentation> CutPiece(const TracePiece& piece, const std::atomic<bool>& stop);

// The records of the piece, each device's.
Result<std::unique_ptr<RecordStream>> OpenPiece(const TracePiece& piece);

}  // namespace blktape
