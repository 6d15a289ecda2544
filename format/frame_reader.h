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

// Splits a byte stream into zstd frames whose checksums hold, and byte ranges that are damaged.
// Memory: one frame (content and compressed). Time: in proportion to the bytes, and to the content
// of the frames found. Behind damage, where every place that looks like a frame has to be tried,
// failed tries may decompress kFreeSearchBytes and kSearchBytesPerByte for every byte passed; when
// that is used up such places are passed over untried until more bytes have been. Only a file made
// to that end gets there. Not thread-safe.
class FrameReader {
 public:
  static constexpr uint64_t kFreeSearchBytes = 256u << 20;
  static constexpr uint64_t kSearchBytesPerByte = 256;

  enum class Kind {
    kFrame,      // content() holds it until the next call
    kSeekTable,  // whole, and agrees with the frames read
    kDamage,     // this byte range is no whole frame
    kEnd,
  };
  struct Event {
    Kind kind = Kind::kEnd;
    uint64_t from_bytes = 0;
    uint64_t to_bytes = 0;
    bool truncated = false;   // kDamage: the source ended inside a frame
    std::string_view reason;  // kDamage: what is wrong
  };

  // `source` stands at `offset_bytes` and must outlive the reader.
  explicit FrameReader(ByteSource* source, uint64_t offset_bytes = 0);

  // The next frame or damaged range, in order and without gaps (skippable frames of other kinds
  // are passed over). Fails only as the source does.
  Result<Event> Next();
  std::string_view content() const { return content_; }

  // Goes on at `offset_bytes`. Elsewhere than at 0 the seek table can then no longer be compared.
  Status Seek(uint64_t offset_bytes);

  // Of the source: where the next frame begins, as the last one has ended.
  uint64_t offset() const { return buffer_at_ + begin_; }

  // What failed tries behind damage have cost so far, in bytes decompressed or the like.
  uint64_t search_bytes() const { return search_bytes_; }

 private:
  struct Attempt {
    bool good = false;
    bool truncated = false;
    uint64_t end_bytes = 0;  // file offset behind it; 0 where it is not known
    Kind kind = Kind::kFrame;
    std::string_view reason;
    bool skip = false;        // good, and of no interest
    uint64_t cost_bytes = 0;  // of having tried
  };

  std::span<const std::byte> unread() const {
    return std::span(buffer_).subspan(begin_, end_ - begin_);
  }
  // Reads until `bytes` are unread or the source ends; returns how many are unread.
  Result<size_t> Fill(uint64_t bytes);
  void Drop(size_t bytes) { begin_ += bytes; }
  // Drops `bytes`, read or not yet read; false if the source ends before.
  Result<bool> Discard(uint64_t bytes);

  // Looks at what begins at the current position, without moving it (a skippable frame of
  // another kind is discarded). Fails where more than `most_bytes` would have to be decompressed.
  Result<Attempt> Try(uint64_t most_bytes);
  Result<Attempt> TryZstd(uint64_t most_bytes);
  Result<Attempt> TrySkippable(uint32_t magic, uint64_t most_bytes);
  uint64_t SearchBytesLeft() const;
  // The damaged range that begins at `from_bytes`, where a try failed so.
  Result<Event> FindNextGood(uint64_t from_bytes, const Attempt& failure);
  Event Take(const Attempt& attempt);

  ByteSource* source_;
  std::vector<std::byte> buffer_;
  size_t begin_ = 0;        // of what is unread
  size_t end_ = 0;          // of what is filled
  uint64_t buffer_at_ = 0;  // file offset of buffer_[0]
  bool at_end_ = false;     // the source has no more
  FrameDecompressor decompressor_;
  std::string_view content_;
  FrameSizesDigest digest_;
  bool read_all_ = true;  // every frame so far is in the digest
  uint64_t search_bytes_ = 0;
  std::optional<Attempt> found_;  // behind a damaged range, not yet delivered
};

}  // namespace blktape
