#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "replay/target/target.h"

namespace blktape {

// How fast 4 KiB random reads of a target are by one engine.
struct EngineFigures {
  int64_t latency_ns = 0;       // from submission to completion at queue depth 1, median
  double reads_per_second = 0;  // at queue depth 32
};

struct EngineChoice {
  std::string engine;  // "io_uring" or "libaio"
  std::string reason;  // with the figures it rests on, for the result
};

// The rule, apart from measuring: io_uring, which costs less CPU, unless its product of latency and
// time a read at depth is more than 1.3 times libaio's. A short probe is off by some 20 %: with a
// narrower margin ten equal replays took io_uring eight times and libaio twice.
EngineChoice ChooseByFigures(const EngineFigures& io_uring, const EngineFigures& libaio);

// What "--engine auto" means: a short read-only probe of the targets by both engines in turns,
// under a second for each target, a little more on rotating disks. Fails only if neither engine can
// be opened.
Result<EngineChoice> ChooseEngine(const std::vector<const Target*>& targets);

}  // namespace blktape
