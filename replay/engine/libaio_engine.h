#pragma once

#include <memory>

#include "base/status.h"
#include "replay/engine/engine.h"
#include "replay/engine/engine_options.h"

namespace blktape {

// Submits requests by the kernel's native asynchronous I/O (io_submit). A read or write that cannot
// be direct completes within Submit, on the calling thread. Flushes go to a kernel worker (4.18),
// discards of block devices to a separate io_uring if the kernel supports that (6.12), other
// discards and zeroing to a thread of this process. kResourceExhausted: fs.aio-max-nr is used up.
Result<std::unique_ptr<Engine>> MakeLibaioEngine(const EngineOptions& options);

}  // namespace blktape
