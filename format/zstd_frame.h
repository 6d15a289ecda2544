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

// A frame that says it holds more is taken for damaged.
inline constexpr uint64_t kMaxFrameContentBytes = 32u << 20;

// Little-endian numbers, unaligned.
uint32_t LoadLittle32(const std::byte* at);
void AppendLittle32(uint32_t value, std::string* to);

// Makes zstd frames with content size and content checksum. Not thread-safe.
class FrameCompressor {
 public:
  explicit FrameCompressor(int level);
  ~FrameCompressor();

  // One frame of `content`, valid until the next call. A new block begins at each of
  // `block_ends` (ascending offsets into `content`), so that each part gets an entropy table of
  // its own.
  std::string_view Compress(std::string_view content, std::span<const size_t> block_ends);

 private:
  ZSTD_CCtx_s* context_;
  std::string frame_;
};

// Checks and undoes a frame. Not thread-safe.
class FrameDecompressor {
 public:
  FrameDecompressor();
  ~FrameDecompressor();

  // The content of `frame`, valid until the next call; nothing if it is damaged or its checksum
  // does not hold.
  std::optional<std::string_view> Decompress(std::span<const std::byte> frame,
                                             uint64_t content_bytes);

 private:
  ZSTD_DCtx_s* context_;
  std::string content_;
};

// Finds the end of a zstd frame from its block headers while its bytes arrive.
class FrameWalk {
 public:
  enum class State { kNeedMore, kComplete, kInvalid };

  // `frame` is what is there so far, from the magic number on, at least what it was at the last
  // call. kInvalid also means: not as this format demands (content size and checksum present, no
  // dictionary, content within kMaxFrameContentBytes), or blocks larger than the content.
  State Advance(std::span<const std::byte> frame);

  // kNeedMore: at least this many bytes are needed. kComplete: the size of the frame.
  uint64_t frame_bytes() const { return position_; }
  uint64_t content_bytes() const { return content_bytes_; }
  // Block headers looked at so far.
  uint64_t blocks() const { return block_count_; }

 private:
  State ReadHeader(std::span<const std::byte> frame);

  bool header_read_ = false;
  bool last_block_seen_ = false;
  uint64_t position_ = 5;  // magic and descriptor
  uint64_t block_header_at_ = 0;
  uint64_t block_count_ = 0;
  uint64_t content_bytes_ = 0;
  uint64_t plain_bytes_ = 0;   // what its raw and run-length blocks yield
  uint64_t stored_bytes_ = 0;  // of its raw and compressed blocks
};

}  // namespace blktape
