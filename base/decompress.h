#pragma once

#include <memory>

#include "base/byte_stream.h"
#include "base/status.h"

namespace blktape {

// What `source` holds, decompressed if its first bytes say that it is a zstd, gzip, xz or bzip2
// file (of one frame, member or stream, or several), else as it is. Seek goes to the start only,
// and only where `source` can. Reading past damage, or an end inside a frame, fails with kDataLoss
// after all that could be decoded.
Result<std::unique_ptr<ByteSource>> Decompressed(std::unique_ptr<ByteSource> source);

}  // namespace blktape
