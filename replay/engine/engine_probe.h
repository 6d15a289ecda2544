#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "replay/target/target.h"

namespace blktape {

// The speed of 4 KiB random reads from a target with one engine.
struct EngineFigures {
  int64_t latency_ns = 0;       // from submission to completion at queue depth 1, median
  double reads_per_second = 0;  // at queue depth 32
};

struct EngineChoice {
  std::string engine;  // "io_uring" or "libaio"
  std::string reason;  // with the measured figures, for the result
};

// The rule, without the measurement. Chooses io_uring, which costs less CPU, unless its product of
// latency and time per read at depth is more than 1.3 times libaio's. A short probe has an error of
// about 20 %: with a narrower margin, ten equal replays chose io_uring eight times and libaio
// twice.
EngineChoice ChooseByFigures(const EngineFigures& io_uring, const EngineFigures& libaio);

// Implements "--engine auto": a short read-only probe of the targets with both engines in turns. It
// takes less than a second per target, a little more on rotating disks. Fails only if neither
// engine can be opened.
Result<EngineChoice> ChooseEngine(const std::vector<const Target*>& targets);

}  // namespace blktape
