#include "format/zstd_frame.h"

#include <zstd.h>

#include "base/check.h"

namespace blktape {
namespace {

constexpr uint64_t kMaxBlockBytes = 128 << 10;
constexpr uint64_t kBlockHeaderBytes = 3;
constexpr uint64_t kChecksumBytes = 4;
constexpr uint64_t kRunBlock = 1;  // one byte, repeated
constexpr uint64_t kCompressedBlock = 2;

uint64_t LoadLittle(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

}  // namespace

uint32_t LoadLittle32(const std::byte* at) {
  return static_cast<uint32_t>(LoadLittle(std::span(at, 4)));
}

void AppendLittle32(uint32_t value, std::string* to) {
  for (int shift = 0; shift < 32; shift += 8) to->push_back(static_cast<char>(value >> shift));
}

FrameCompressor::FrameCompressor(int level) : context_(ZSTD_createCCtx()) {
  BLKTAPE_CHECK(context_ != nullptr);
  BLKTAPE_CHECK(!ZSTD_isError(ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, level)));
  BLKTAPE_CHECK(!ZSTD_isError(ZSTD_CCtx_setParameter(context_, ZSTD_c_checksumFlag, 1)));
  BLKTAPE_CHECK(!ZSTD_isError(ZSTD_CCtx_setParameter(context_, ZSTD_c_contentSizeFlag, 1)));
}

FrameCompressor::~FrameCompressor() { ZSTD_freeCCtx(context_); }

std::string_view FrameCompressor::Compress(std::string_view content,
                                           std::span<const size_t> block_ends) {
  BLKTAPE_CHECK(content.size() <= kMaxFrameContentBytes);
  ZSTD_CCtx_reset(context_, ZSTD_reset_session_only);
  ZSTD_CCtx_setPledgedSrcSize(context_, content.size());
  frame_.resize(ZSTD_compressBound(content.size()) + (block_ends.size() + 1) * 64);
  ZSTD_outBuffer out = {frame_.data(), frame_.size(), 0};
  const auto compress = [&](size_t from, size_t to, ZSTD_EndDirective directive) {
    ZSTD_inBuffer in = {content.data() + from, to - from, 0};
    // The output has room for all, so one call does it.
    const size_t left = ZSTD_compressStream2(context_, &out, &in, directive);
    BLKTAPE_CHECK(!ZSTD_isError(left) && left == 0 && in.pos == in.size);
  };
  size_t begin = 0;
  for (const size_t end : block_ends) {
    compress(begin, end, ZSTD_e_flush);
    begin = end;
  }
  compress(begin, content.size(), ZSTD_e_end);
  return std::string_view(frame_).substr(0, out.pos);
}

FrameDecompressor::FrameDecompressor() : context_(ZSTD_createDCtx()) {
  BLKTAPE_CHECK(context_ != nullptr);
}

FrameDecompressor::~FrameDecompressor() { ZSTD_freeDCtx(context_); }

std::optional<std::string_view> FrameDecompressor::Decompress(std::span<const std::byte> frame,
                                                              uint64_t content_bytes) {
  BLKTAPE_CHECK(content_bytes <= kMaxFrameContentBytes);
  if (content_.size() < content_bytes) content_.resize(content_bytes);
  const size_t got =
      ZSTD_decompressDCtx(context_, content_.data(), content_bytes, frame.data(), frame.size());
  if (ZSTD_isError(got) || got != content_bytes) return std::nullopt;
  return std::string_view(content_).substr(0, got);
}

FrameWalk::State FrameWalk::ReadHeader(std::span<const std::byte> frame) {
  const auto descriptor = static_cast<uint8_t>(frame[4]);
  const bool single_segment = (descriptor & 0x20) != 0;
  const bool reserved = (descriptor & 0x08) != 0;
  const bool checksum = (descriptor & 0x04) != 0;
  const bool dictionary = (descriptor & 0x03) != 0;
  const int size_code = descriptor >> 6;
  // Without a content size memory would be unbounded; without a checksum damage would be unnoticed.
  if (LoadLittle32(frame.data()) != kZstdMagic || reserved || !checksum || dictionary ||
      (size_code == 0 && !single_segment)) {
    return State::kInvalid;
  }
  const size_t size_at = 5 + (single_segment ? 0 : 1);
  const size_t size_bytes = size_t{1} << size_code;
  position_ = size_at + size_bytes;
  if (frame.size() < position_) return State::kNeedMore;
  content_bytes_ = LoadLittle(frame.subspan(size_at, size_bytes)) + (size_code == 1 ? 256 : 0);
  if (content_bytes_ > kMaxFrameContentBytes) return State::kInvalid;
  header_read_ = true;
  block_header_at_ = position_;
  position_ += kBlockHeaderBytes;
  return State::kNeedMore;
}

FrameWalk::State FrameWalk::Advance(std::span<const std::byte> frame) {
  if (frame.size() < position_) return State::kNeedMore;
  if (!header_read_) {
    const State state = ReadHeader(frame);
    if (state == State::kInvalid || !header_read_) return state;
  }
  while (!last_block_seen_) {
    if (frame.size() < position_) return State::kNeedMore;
    const uint64_t header = LoadLittle(frame.subspan(block_header_at_, kBlockHeaderBytes));
    const uint64_t type = header >> 1 & 3;
    const uint64_t size = header >> 3;
    ++block_count_;
    // A block yields 128 KiB at most, and an encoder has no use for very many empty ones.
    if (type == 3 || size > kMaxBlockBytes || block_count_ > 1'000'000) return State::kInvalid;
    // Raw and run-length blocks contain their content size, and an encoder compresses a block only
    // if that makes it smaller. So a valid frame is hardly larger than its content.
    if (type != kCompressedBlock) plain_bytes_ += size;
    if (type != kRunBlock) stored_bytes_ += size;
    if (plain_bytes_ > content_bytes_ || stored_bytes_ > content_bytes_ + kMaxBlockBytes) {
      return State::kInvalid;
    }
    last_block_seen_ = (header & 1) != 0;
    position_ += type == kRunBlock ? 1 : size;
    if (last_block_seen_) {
      position_ += kChecksumBytes;
      if (content_bytes_ > block_count_ * kMaxBlockBytes) return State::kInvalid;
    } else {
      block_header_at_ = position_;
      position_ += kBlockHeaderBytes;
    }
  }
  return frame.size() < position_ ? State::kNeedMore : State::kComplete;
}

}  // namespace blktape
