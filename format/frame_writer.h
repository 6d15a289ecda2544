#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/byte_stream.h"
#include "base/status.h"
#include "format/seek_table.h"
#include "format/zstd_frame.h"

namespace blktape {

// Appends zstd frames to a sink and keeps the data for the seek table (8 bytes per frame). After a
// failure every further call returns the same failure. Not thread-safe.
class FrameWriter {
 public:
  // `sink` must outlive the writer.
  FrameWriter(ByteSink* sink, int zstd_level) : sink_(sink), compressor_(zstd_level) {}

  // Writes one frame; `block_ends` as in FrameCompressor.
  Status Write(std::string_view content, std::span<const size_t> block_ends = {});
  Status WriteSeekTable();
  Status Sync();

  // The file offset where the next frame will begin.
  uint64_t offset_bytes() const { return offset_bytes_; }
  const Status& status() const { return status_; }

 private:
  Status Append(std::string_view bytes);

  ByteSink* sink_;
  FrameCompressor compressor_;
  SeekTableBuilder seek_table_;
  uint64_t offset_bytes_ = 0;
  Status status_;
};

}  // namespace blktape
