#pragma once

#include <memory>

#include "base/status.h"
#include "replay/engine/engine.h"
#include "replay/engine/engine_options.h"

namespace blktape {

// Submits requests by the kernel's native asynchronous I/O (io_submit). A read or write that cannot
// be direct completes within Submit, on the calling thread. Discards of block devices go to a
// separate io_uring if the kernel supports that (6.12), flushes, other discards and zeroing to
// threads of this process. kResourceExhausted: fs.aio-max-nr is used up.
Result<std::unique_ptr<Engine>> MakeLibaioEngine(const EngineOptions& options);

}  // namespace blktape
