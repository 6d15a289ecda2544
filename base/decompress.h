#pragma once

#include <memory>

#include "base/byte_stream.h"
#include "base/status.h"

namespace blktape {

// The content of `source`: decompressed if its first bytes are those of a zstd, gzip, xz or bzip2
// file (with one or several frames, members or streams), else unchanged. Seek goes to the start
// only, and only if `source` can seek. If the data is damaged or ends inside a frame, Read first
// returns all bytes that could be decoded and then fails with kDataLoss.
Result<std::unique_ptr<ByteSource>> Decompressed(std::unique_ptr<ByteSource> source);

}  // namespace blktape
