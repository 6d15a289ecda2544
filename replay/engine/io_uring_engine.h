#pragma once

#include <memory>

#include "base/status.h"
#include "replay/engine/engine.h"
#include "replay/engine/engine_options.h"

namespace blktape {

// Submits requests by io_uring, with registered files and, if the arena can be locked in memory,
// registered buffers. Uses newer kernel features where they exist: a single issuer with deferred
// completion work (6.1) and block discard (6.12).
//
// io_uring always hands flushes, zeroing and discards of files to a kernel worker. Discards of
// block devices go to a worker if the kernel may throttle them and another discard is in flight.
// Reads and writes go to a worker on targets whose driver may block: mode() names those targets,
// and the completions are marked `punted`. kUnavailable: the kernel lacks or forbids io_uring, or
// the target lacks polled completion.
Result<std::unique_ptr<Engine>> MakeIoUringEngine(const EngineOptions& options);

}  // namespace blktape
