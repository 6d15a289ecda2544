#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace blktape {

// Magic numbers and frame layout: RFC 8878. Seek table: contrib/seekable_format of zstd.
inline constexpr uint32_t kZstdMagic = 0xFD2FB528;
inline constexpr uint32_t kSkippableMagic = 0x184D2A50;  // to ...5F
inline constexpr uint32_t kSeekTableMagic = 0x184D2A5E;

// A frame that claims to contain more counts as damaged.
inline constexpr uint64_t kMaxFrameContentBytes = 32u << 20;

// Little-endian numbers, unaligned.
uint32_t LoadLittle32(const std::byte* at);
void AppendLittle32(uint32_t value, std::string* to);

// Makes zstd frames with content size and content checksum. Not thread-safe.
class FrameCompressor {
 public:
  explicit FrameCompressor(int level);
  ~FrameCompressor();

  // Compresses `content` into one frame, valid until the next call. A new block begins at each of
  // `block_ends` (ascending offsets into `content`), so that each part gets its own entropy table.
  std::string_view Compress(std::string_view content, std::span<const size_t> block_ends);

 private:
  ZSTD_CCtx_s* context_;
  std::string frame_;
};

// Checks and decompresses a frame. Not thread-safe.
class FrameDecompressor {
 public:
  FrameDecompressor();
  ~FrameDecompressor();

  // The content of `frame`, valid until the next call. Absent if the frame is damaged or its
  // checksum is wrong.
  std::optional<std::string_view> Decompress(std::span<const std::byte> frame,
                                             uint64_t content_bytes);

 private:
  ZSTD_DCtx_s* context_;
  std::string content_;
};

// Finds the end of a zstd frame from its block headers, while the frame's bytes arrive.
class FrameWalk {
 public:
  enum class State { kNeedMore, kComplete, kInvalid };

  // `frame` contains all bytes so far, starting with the magic number, and never fewer than at the
  // last call. kInvalid also if the frame violates this format's rules (content size and checksum
  // present, no dictionary, content within kMaxFrameContentBytes), or if its blocks are larger than
  // the content.
  State Advance(std::span<const std::byte> frame);

  // kNeedMore: at least this many bytes are needed. kComplete: the size of the frame.
  uint64_t frame_bytes() const { return position_; }
  uint64_t content_bytes() const { return content_bytes_; }
  // The number of block headers seen so far.
  uint64_t blocks() const { return block_count_; }

 private:
  State ReadHeader(std::span<const std::byte> frame);

  bool header_read_ = false;
  bool last_block_seen_ = false;
  uint64_t position_ = 5;  // magic and descriptor
  uint64_t block_header_at_ = 0;
  uint64_t block_count_ = 0;
  uint64_t content_bytes_ = 0;
  uint64_t plain_bytes_ = 0;   // content of its raw and run-length blocks
  uint64_t stored_bytes_ = 0;  // size of its raw and compressed blocks
};

}  // namespace blktape
