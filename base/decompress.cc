#include "base/decompress.h"

#include <bzlib.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"

namespace blktape {
namespace {

constexpr size_t kBufferBytes = 65536;

// A source whose first bytes can be read in advance.
class PeekedSource : public ByteSource {
 public:
  explicit PeekedSource(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}

  // At least `count` bytes unless the source is shorter; before the first Read only.
  Result<std::span<const std::byte>> Peek(size_t count) {
    while (head_.size() < count) {
      std::array<std::byte, 64> buffer;
      ASSIGN_OR_RETURN(const size_t got,
                       source_->Read(std::span(buffer).first(count - head_.size())));
      if (got == 0) break;
      head_.insert(head_.end(), buffer.begin(), buffer.begin() + static_cast<ptrdiff_t>(got));
    }
    return std::span<const std::byte>(head_);
  }

  Result<size_t> Read(std::span<std::byte> buffer) override {
    if (taken_ == head_.size()) return source_->Read(buffer);
    const size_t count = std::min(buffer.size(), head_.size() - taken_);
    std::memcpy(buffer.data(), head_.data() + taken_, count);
    taken_ += count;
    return count;
  }
  Status Seek(uint64_t offset) override {
    RETURN_IF_ERROR(source_->Seek(offset));
    taken_ = head_.size();
    return OkStatus();
  }
  std::optional<uint64_t> size_bytes() const override { return source_->size_bytes(); }
  std::string_view name() const override { return source_->name(); }

 private:
  std::unique_ptr<ByteSource> source_;
  std::vector<std::byte> head_;
  size_t taken_ = 0;
};

// The common part of all formats: an input buffer, and the decoder's position in it.
class DecompressingSource : public ByteSource {
 public:
  explicit DecompressingSource(std::unique_ptr<ByteSource> source)
      : source_(std::move(source)), input_(kBufferBytes) {}

  Result<size_t> Read(std::span<std::byte> buffer) override {
    if (buffer.empty()) return size_t{0};
    while (true) {
      ASSIGN_OR_RETURN(const size_t count, DecodeInto(buffer));
      if (count > 0) return count;
      if (begin_ < end_) continue;
      ASSIGN_OR_RETURN(const size_t got, source_->Read(input_));
      begin_ = 0;
      end_ = got;
      if (got == 0) {
        if (inside_frame_) return Damage("ends inside a compressed frame");
        return size_t{0};
      }
    }
  }

  Status Seek(uint64_t offset) override {
    if (offset != 0) {
      return Status(StatusCode::kUnimplemented,
                    std::string(name()) + ": is compressed, and can only be read from its start");
    }
    RETURN_IF_ERROR(source_->Seek(0));
    begin_ = end_ = 0;
    inside_frame_ = false;
    Reset();
    return OkStatus();
  }
  std::optional<uint64_t> size_bytes() const override { return std::nullopt; }
  std::string_view name() const override { return source_->name(); }

 protected:
  // Decodes what is in input_[begin_, end_), advances begin_ and sets inside_frame_.
  virtual Result<size_t> DecodeInto(std::span<std::byte> buffer) = 0;
  virtual void Reset() = 0;

  Status Damage(const std::string& what) const {
    return Status(StatusCode::kDataLoss, std::string(name()) + ": " + what);
  }

  std::unique_ptr<ByteSource> source_;
  std::vector<std::byte> input_;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool inside_frame_ = false;
};

class ZstdSource : public DecompressingSource {
 public:
  explicit ZstdSource(std::unique_ptr<ByteSource> source)
      : DecompressingSource(std::move(source)), stream_(ZSTD_createDStream()) {
    BLKTAPE_CHECK(stream_ != nullptr);
  }
  ~ZstdSource() override { ZSTD_freeDStream(stream_); }

 protected:
  Result<size_t> DecodeInto(std::span<std::byte> buffer) override {
    ZSTD_outBuffer out{buffer.data(), buffer.size(), 0};
    ZSTD_inBuffer in{input_.data(), end_, begin_};
    // Without input, the decoder still returns what it decoded before.
    if (in.pos == in.size && !inside_frame_) return size_t{0};
    const size_t result = ZSTD_decompressStream(stream_, &out, &in);
    begin_ = in.pos;
    if (ZSTD_isError(result)) {
      return Damage(std::string("damaged zstd frame: ") + ZSTD_getErrorName(result));
    }
    inside_frame_ = result != 0;
    return out.pos;
  }
  void Reset() override { ZSTD_DCtx_reset(stream_, ZSTD_reset_session_only); }

 private:
  ZSTD_DStream* stream_;
};

class GzipSource : public DecompressingSource {
 public:
  explicit GzipSource(std::unique_ptr<ByteSource> source) : DecompressingSource(std::move(source)) {
    constexpr int kGzipWindowBits = 15 + 16;
    BLKTAPE_CHECK(inflateInit2(&stream_, kGzipWindowBits) == Z_OK);
  }
  ~GzipSource() override { inflateEnd(&stream_); }

 protected:
  Result<size_t> DecodeInto(std::span<std::byte> buffer) override {
    if (begin_ == end_ && !inside_frame_) return size_t{0};
    if (!inside_frame_) inflateReset(&stream_);
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data() + begin_);
    stream_.avail_in = static_cast<uInt>(end_ - begin_);
    stream_.next_out = reinterpret_cast<Bytef*>(buffer.data());
    const auto room = static_cast<uInt>(std::min<size_t>(buffer.size(), 1u << 30));
    stream_.avail_out = room;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    begin_ = end_ - stream_.avail_in;
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
      return Damage(std::string("damaged gzip data: ") +
                    (stream_.msg != nullptr ? stream_.msg : "no reason given"));
    }
    inside_frame_ = result != Z_STREAM_END;
    return size_t{room - stream_.avail_out};
  }
  void Reset() override { inflateReset(&stream_); }

 private:
  z_stream stream_{};
};

class XzSource : public DecompressingSource {
 public:
  explicit XzSource(std::unique_ptr<ByteSource> source) : DecompressingSource(std::move(source)) {
    Reset();
  }
  ~XzSource() override { lzma_end(&stream_); }

 protected:
  Result<size_t> DecodeInto(std::span<std::byte> buffer) override {
    if (begin_ == end_ && !inside_frame_) return size_t{0};
    if (ended_) Begin();
    stream_.next_in = reinterpret_cast<const uint8_t*>(input_.data() + begin_);
    stream_.avail_in = end_ - begin_;
    stream_.next_out = reinterpret_cast<uint8_t*>(buffer.data());
    stream_.avail_out = buffer.size();
    const lzma_ret result = lzma_code(&stream_, LZMA_RUN);
    begin_ = end_ - stream_.avail_in;
    if (result == LZMA_MEMLIMIT_ERROR) {
      return Damage("xz data that needs more than 256 MiB of memory to read");
    }
    if (result != LZMA_OK && result != LZMA_STREAM_END && result != LZMA_BUF_ERROR) {
      return Damage("damaged xz data");
    }
    ended_ = result == LZMA_STREAM_END;
    inside_frame_ = !ended_;
    return buffer.size() - stream_.avail_out;
  }
  void Reset() override { Begin(); }

 private:
  // `xz -9` needs 65 MiB. The bound keeps a file from asking for any amount of memory.
  static constexpr uint64_t kMemoryBytes = uint64_t{256} << 20;

  void Begin() {
    BLKTAPE_CHECK(lzma_stream_decoder(&stream_, kMemoryBytes, 0) == LZMA_OK);
    ended_ = false;
  }

  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool ended_ = false;
};

class Bzip2Source : public DecompressingSource {
 public:
  explicit Bzip2Source(std::unique_ptr<ByteSource> source)
      : DecompressingSource(std::move(source)) {
    BLKTAPE_CHECK(BZ2_bzDecompressInit(&stream_, 0, 0) == BZ_OK);
  }
  ~Bzip2Source() override { BZ2_bzDecompressEnd(&stream_); }

 protected:
  Result<size_t> DecodeInto(std::span<std::byte> buffer) override {
    if (begin_ == end_ && !inside_frame_) return size_t{0};
    if (ended_) Reset();
    stream_.next_in = reinterpret_cast<char*>(input_.data() + begin_);
    stream_.avail_in = static_cast<unsigned>(end_ - begin_);
    stream_.next_out = reinterpret_cast<char*>(buffer.data());
    const auto room = static_cast<unsigned>(std::min<size_t>(buffer.size(), 1u << 30));
    stream_.avail_out = room;
    const int result = BZ2_bzDecompress(&stream_);
    begin_ = end_ - stream_.avail_in;
    if (result != BZ_OK && result != BZ_STREAM_END) return Damage("damaged bzip2 data");
    ended_ = result == BZ_STREAM_END;
    inside_frame_ = !ended_;
    return size_t{room - stream_.avail_out};
  }
  void Reset() override {
    BZ2_bzDecompressEnd(&stream_);
    stream_ = {};
    BLKTAPE_CHECK(BZ2_bzDecompressInit(&stream_, 0, 0) == BZ_OK);
    ended_ = false;
  }

 private:
  bz_stream stream_{};
  bool ended_ = false;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> Decompressed(std::unique_ptr<ByteSource> source) {
  auto peeked = std::make_unique<PeekedSource>(std::move(source));
  ASSIGN_OR_RETURN(const std::span<const std::byte> head, peeked->Peek(6));
  constexpr std::array<std::byte, 4> kZstd = {std::byte{0x28}, std::byte{0xb5}, std::byte{0x2f},
                                              std::byte{0xfd}};
  constexpr std::array<std::byte, 2> kGzip = {std::byte{0x1f}, std::byte{0x8b}};
  constexpr std::array<std::byte, 6> kXz = {std::byte{0xfd}, std::byte{'7'}, std::byte{'z'},
                                            std::byte{'X'},  std::byte{'Z'}, std::byte{0}};
  constexpr std::array<std::byte, 3> kBzip2 = {std::byte{'B'}, std::byte{'Z'}, std::byte{'h'}};
  const auto begins_with = [&](std::span<const std::byte> magic) {
    return head.size() >= magic.size() && std::equal(magic.begin(), magic.end(), head.begin());
  };
  if (begins_with(kZstd)) {
    return std::unique_ptr<ByteSource>(std::make_unique<ZstdSource>(std::move(peeked)));
  }
  if (begins_with(kGzip)) {
    return std::unique_ptr<ByteSource>(std::make_unique<GzipSource>(std::move(peeked)));
  }
  if (begins_with(kXz)) {
    return std::unique_ptr<ByteSource>(std::make_unique<XzSource>(std::move(peeked)));
  }
  if (begins_with(kBzip2)) {
    return std::unique_ptr<ByteSource>(std::make_unique<Bzip2Source>(std::move(peeked)));
  }
  return std::unique_ptr<ByteSource>(std::move(peeked));
}

}  // namespace blktape
