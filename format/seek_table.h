#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/byte_stream.h"
#include "base/status.h"

namespace blktape {

// The seek table of the zstd seekable format (contrib/seekable_format): a skippable frame at the
// end of the file that lists the compressed and content size of every frame.
inline constexpr size_t kSkippableHeaderBytes = 8;  // magic, size of the rest
inline constexpr uint32_t kMaxSeekTableBytes = 64u << 20;

// A digest of the sizes of a run of frames, of constant size for any number of frames. Used to
// compare the frames read with the table.
class FrameSizesDigest {
 public:
  void Add(uint64_t compressed_bytes, uint64_t content_bytes);
  bool operator==(const FrameSizesDigest&) const = default;

 private:
  uint64_t frames_ = 0;
  uint64_t hash_ = 0;
};

// Collects the entries and builds the skippable frame.
class SeekTableBuilder {
 public:
  void Add(uint64_t compressed_bytes, uint64_t content_bytes);
  // Returns the complete skippable frame.
  std::string Build() const;

 private:
  std::string entries_;
  uint32_t frames_ = 0;
};

// Parses the payload of a seek table (everything after the skippable header) into the digest of the
// frames before it. Absent if the table is malformed.
std::optional<FrameSizesDigest> ParseSeekTable(std::span<const std::byte> payload);

struct FrameExtent {
  uint64_t offset_bytes = 0;
  uint64_t compressed_bytes = 0;
};

// Finds the last frame before the seek table at the end of `source`. Absent if there is no such
// table. Moves the source's position.
Result<std::optional<FrameExtent>> FindLastFrame(ByteSource* source);

}  // namespace blktape
