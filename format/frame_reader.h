#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/byte_stream.h"
#include "base/status.h"
#include "format/seek_table.h"
#include "format/zstd_frame.h"

namespace blktape {

// Splits a byte stream into zstd frames with correct checksums and damaged byte ranges. Memory: one
// frame (content and compressed). Time: proportional to the bytes and to the content of the frames
// found. After damage every place that looks like a frame is tried. Failed tries may decompress at
// most kFreeSearchBytes plus kSearchBytesPerByte per byte passed; beyond that, such places are
// skipped until more bytes are passed. Only a file made for this purpose reaches the limit. Not
// thread-safe.
class FrameReader {
 public:
  static constexpr uint64_t kFreeSearchBytes = 256u << 20;
  static constexpr uint64_t kSearchBytesPerByte = 256;

  enum class Kind {
    kFrame,      // content() is valid until the next call
    kSeekTable,  // complete, and matches the frames read
    kDamage,     // this byte range is not a complete frame
    kEnd,
  };
  struct Event {
    Kind kind = Kind::kEnd;
    uint64_t from_bytes = 0;
    uint64_t to_bytes = 0;
    bool truncated = false;   // kDamage: the source ended inside a frame
    std::string_view reason;  // kDamage: what is wrong
  };

  // `source` must be at `offset_bytes` and outlive the reader.
  explicit FrameReader(ByteSource* source, uint64_t offset_bytes = 0);

  // Returns the next frame or damaged range, in order and without gaps (skippable frames of other
  // kinds are skipped). Fails only if the source fails.
  Result<Event> Next();
  std::string_view content() const { return content_; }

  // The next frame, without decompressing it. Absent if something else comes next, which Next()
  // then returns. If the frame does not decompress to `content_bytes`, go back with
  // Seek(from_bytes) and call Next(), which reports the damage.
  struct RawFrame {
    uint64_t from_bytes = 0;
    std::span<const std::byte> bytes;  // until the next call
    uint64_t content_bytes = 0;
  };
  Result<std::optional<RawFrame>> NextRaw();

  // Goes on at `offset_bytes`. Elsewhere than at 0 the seek table can then no longer be compared.
  Status Seek(uint64_t offset_bytes);

  // The source offset where the last frame ended and the next one begins.
  uint64_t offset() const { return buffer_at_ + begin_; }

  // The cost of failed tries after damage so far, in bytes decompressed or equivalent.
  uint64_t search_bytes() const { return search_bytes_; }

 private:
  struct Attempt {
    bool good = false;
    bool truncated = false;
    uint64_t end_bytes = 0;  // file offset after the frame; 0 if unknown
    Kind kind = Kind::kFrame;
    std::string_view reason;
    bool skip = false;        // valid, but of no interest
    uint64_t cost_bytes = 0;  // of the try
  };

  std::span<const std::byte> unread() const {
    return std::span(buffer_).subspan(begin_, end_ - begin_);
  }
  // Reads until `bytes` bytes are buffered or the source ends; returns how many are buffered.
  Result<size_t> Fill(uint64_t bytes);
  void Drop(size_t bytes) { begin_ += bytes; }
  // Skips `bytes` bytes, buffered or not; false if the source ends before that.
  Result<bool> Discard(uint64_t bytes);

  // Examines what begins at the current position, without moving it (a skippable frame of another
  // kind is discarded). Fails if more than `most_bytes` would have to be decompressed.
  Result<Attempt> Try(uint64_t most_bytes);
  Result<Attempt> TryZstd(uint64_t most_bytes);
  Result<Attempt> TrySkippable(uint32_t magic, uint64_t most_bytes);
  uint64_t SearchBytesLeft() const;
  // Finds the end of the damaged range that begins at `from_bytes`, where a try failed with
  // `failure`.
  Result<Event> FindNextGood(uint64_t from_bytes, const Attempt& failure);
  Event Take(const Attempt& attempt);

  ByteSource* source_;
  std::vector<std::byte> buffer_;
  size_t begin_ = 0;        // start of the unread bytes
  size_t end_ = 0;          // end of the buffered bytes
  uint64_t buffer_at_ = 0;  // file offset of buffer_[0]
  bool at_end_ = false;     // the source has no more
  FrameDecompressor decompressor_;
  std::string_view content_;
  FrameSizesDigest digest_;
  bool read_all_ = true;  // every frame so far is in the digest
  uint64_t search_bytes_ = 0;
  std::optional<Attempt> found_;  // after a damaged range, not yet delivered
};

}  // namespace blktape
