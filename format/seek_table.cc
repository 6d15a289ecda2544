#include "format/seek_table.h"

#include <algorithm>

#include "format/zstd_frame.h"

namespace blktape {
namespace {

constexpr uint32_t kFooterMagic = 0x8F92EAB1;
constexpr size_t kFooterBytes = 9;
constexpr size_t kEntryBytes = 8;
constexpr size_t kChecksumBytes = 4;

struct Footer {
  uint64_t frames = 0;
  size_t entry_bytes = 0;
};

std::optional<Footer> ParseFooter(std::span<const std::byte, kFooterBytes> bytes) {
  if (LoadLittle32(&bytes[5]) != kFooterMagic) return std::nullopt;
  const auto descriptor = static_cast<uint8_t>(bytes[4]);
  if ((descriptor & 0x7C) != 0) return std::nullopt;  // reserved
  return Footer{LoadLittle32(bytes.data()),
                kEntryBytes + ((descriptor & 0x80) != 0 ? kChecksumBytes : 0)};
}

// Fills all of `buffer`; false at an early end.
Result<bool> ReadFully(ByteSource* source, std::span<std::byte> buffer) {
  while (!buffer.empty()) {
    ASSIGN_OR_RETURN(const size_t got, source->Read(buffer));
    if (got == 0) return false;
    buffer = buffer.subspan(got);
  }
  return true;
}

}  // namespace

void FrameSizesDigest::Add(uint64_t compressed_bytes, uint64_t content_bytes) {
  ++frames_;
  // Multiply and xorshift: any change of one number changes the digest.
  hash_ = (hash_ ^ (compressed_bytes << 32 ^ content_bytes)) * 0x9E3779B97F4A7C15;
  hash_ ^= hash_ >> 29;
}

void SeekTableBuilder::Add(uint64_t compressed_bytes, uint64_t content_bytes) {
  AppendLittle32(static_cast<uint32_t>(compressed_bytes), &entries_);
  AppendLittle32(static_cast<uint32_t>(content_bytes), &entries_);
  ++frames_;
}

std::string SeekTableBuilder::Build() const {
  std::string table;
  AppendLittle32(kSeekTableMagic, &table);
  AppendLittle32(static_cast<uint32_t>(entries_.size() + kFooterBytes), &table);
  table += entries_;
  AppendLittle32(frames_, &table);
  table.push_back('\0');  // descriptor: no checksums, each frame has its own
  AppendLittle32(kFooterMagic, &table);
  return table;
}

std::optional<FrameSizesDigest> ParseSeekTable(std::span<const std::byte> payload) {
  if (payload.size() < kFooterBytes) return std::nullopt;
  const std::optional<Footer> footer = ParseFooter(payload.last<kFooterBytes>());
  if (!footer || footer->frames * footer->entry_bytes + kFooterBytes != payload.size()) {
    return std::nullopt;
  }
  FrameSizesDigest digest;
  for (uint64_t i = 0; i < footer->frames; ++i) {
    const std::byte* const entry = payload.data() + i * footer->entry_bytes;
    digest.Add(LoadLittle32(entry), LoadLittle32(entry + 4));
  }
  return digest;
}

Result<std::optional<FrameExtent>> FindLastFrame(ByteSource* source) {
  const std::optional<FrameExtent> none;
  const uint64_t file_bytes = source->size_bytes().value_or(0);
  if (file_bytes < kSkippableHeaderBytes + kFooterBytes) return none;
  std::byte footer_bytes[kFooterBytes];
  RETURN_IF_ERROR(source->Seek(file_bytes - kFooterBytes));
  ASSIGN_OR_RETURN(const bool footer_read, ReadFully(source, footer_bytes));
  if (!footer_read) return none;
  const std::optional<Footer> footer = ParseFooter(footer_bytes);
  if (!footer || footer->frames == 0) return none;
  const uint64_t payload_bytes = footer->frames * footer->entry_bytes + kFooterBytes;
  if (payload_bytes > kMaxSeekTableBytes || payload_bytes + kSkippableHeaderBytes > file_bytes) {
    return none;
  }
  const uint64_t table_at = file_bytes - payload_bytes - kSkippableHeaderBytes;
  std::byte header[kSkippableHeaderBytes];
  RETURN_IF_ERROR(source->Seek(table_at));
  ASSIGN_OR_RETURN(const bool header_read, ReadFully(source, header));
  if (!header_read || LoadLittle32(header) != kSeekTableMagic ||
      LoadLittle32(header + 4) != payload_bytes) {
    return none;
  }
  std::byte entry[kEntryBytes];
  RETURN_IF_ERROR(source->Seek(file_bytes - kFooterBytes - footer->entry_bytes));
  ASSIGN_OR_RETURN(const bool entry_read, ReadFully(source, entry));
  const uint64_t compressed_bytes = LoadLittle32(entry);
  if (!entry_read || compressed_bytes > table_at) return none;
  return std::optional<FrameExtent>(FrameExtent{table_at - compressed_bytes, compressed_bytes});
}

}  // namespace blktape
