#pragma once

#include <string>

#include "base/byte_stream.h"
#include "base/status.h"

namespace blktape {

// SHA-256 of the rest of `source`, as 64 lower-case hex digits: the same as sha256sum prints.
Result<std::string> Sha256Hex(ByteSource* source);

}  // namespace blktape
