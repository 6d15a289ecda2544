#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace blktape {

// Traces made of a fuzzer's bytes. Their frames are whole, since a checksum would hide everything
// behind it.

// The bytes as the content of frames; each holds the first so many as a number of its own says.
std::string FramesFromBytes(std::string_view bytes, bool with_header);

// The bytes as fields of records, losses, sizes and a summary. The first byte says how many devices
// there are and whether the trace is finished.
std::string RecordsFromBytes(std::string_view bytes);

// One of the two, or the bytes as they are: the first byte says which.
std::string TraceFromBytes(std::string_view bytes);

// A file in memory that holds `content`, by a path that can be opened as often as one likes. The
// same one each time: what it held before is gone.
std::string PathInMemory(std::string_view content);

}  // namespace blktape
