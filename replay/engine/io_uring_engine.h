#pragma once

#include <memory>

#include "base/status.h"
#include "replay/engine/engine.h"
#include "replay/engine/engine_options.h"

namespace blktape {

// Requests travel by io_uring, with registered files and, where the arena can be locked in memory,
// registered buffers. Uses what the kernel has: a single issuer with deferred completion work
// (6.1), block discard (6.12); without them the older ways.
//
// Flushes, zeroing and discards of files always go to a kernel worker, as io_uring has it; discards
// of block devices do where the kernel may throttle them and another is out; reads and writes do on
// targets whose driver may block (mode() names them; completions say `punted`). kUnavailable: the
// kernel lacks or forbids io_uring, or the target lacks polled completion.
Result<std::unique_ptr<Engine>> MakeIoUringEngine(const EngineOptions& options);

}  // namespace blktape
