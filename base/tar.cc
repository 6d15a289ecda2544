#include "base/tar.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace blktape {
namespace {

// POSIX.1-2017, pax, "ustar Interchange Format": 512-byte blocks, header fields at these offsets.
constexpr size_t kBlock = 512;
constexpr size_t kNameAt = 0, kNameBytes = 100;
constexpr size_t kSizeAt = 124, kSizeBytes = 12;
constexpr size_t kSumAt = 148, kSumBytes = 8;
constexpr size_t kTypeAt = 156;
constexpr size_t kMagicAt = 257;
constexpr size_t kPrefixAt = 345, kPrefixBytes = 155;
// Longer names are truncated.
constexpr uint64_t kLongestName = 4096;

std::string_view Field(std::span<const std::byte> block, size_t at, size_t bytes) {
  const char* begin = reinterpret_cast<const char*>(block.data()) + at;
  return {begin, strnlen(begin, bytes)};
}

// Octal text, or the GNU binary form, whose first byte is 0x80.
std::optional<uint64_t> NumberIn(std::span<const std::byte> block, size_t at, size_t bytes) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(block[at + i]); };
  uint64_t value = 0;
  if (byte(0) == 0x80) {
    for (size_t i = bytes - 8; i < bytes; ++i) value = value << 8 | byte(i);
    return value >> 62 == 0 ? std::optional(value) : std::nullopt;
  }
  bool digits = false;
  for (size_t i = 0; i < bytes; ++i) {
    const uint8_t c = byte(i);
    if (c >= '0' && c <= '7') {
      value = value << 3 | (c - '0');
      digits = true;
    } else if (c == ' ' && !digits) {
      continue;
    } else if (c == ' ' || c == '\0') {
      break;
    } else {
      return std::nullopt;
    }
  }
  return digits ? std::optional(value) : std::nullopt;
}

// The checksum is the sum of the header's bytes, with the checksum field counted as blanks.
bool ChecksumIsRight(std::span<const std::byte> block) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const bool own = i >= kSumAt && i < kSumAt + kSumBytes;
    sum += own ? uint64_t{' '} : static_cast<uint8_t>(block[i]);
  }
  return NumberIn(block, kSumAt, kSumBytes) == sum;
}

// The value of "path" in pax records, each "LENGTH KEY=VALUE\n".
std::string PaxPath(std::string_view records) {
  std::string path;
  while (!records.empty()) {
    size_t length = 0;
    size_t at = 0;
    while (at < records.size() && records[at] >= '0' && records[at] <= '9' && length < (1u << 24)) {
      length = length * 10 + static_cast<size_t>(records[at++] - '0');
    }
    if (length <= at + 1 || length > records.size() || records[at] != ' ') break;
    const std::string_view record = records.substr(at + 1, length - at - 2);
    if (record.starts_with("path=")) path = record.substr(5);
    records.remove_prefix(length);
  }
  return path;
}

}  // namespace

bool LooksLikeTar(std::span<const std::byte> head) {
  return head.size() >= kBlock && std::memcmp(head.data() + kMagicAt, "ustar", 5) == 0 &&
         ChecksumIsRight(head.first(kBlock));
}

Status TarReader::Damage(const std::string& what) const {
  return Status(StatusCode::kDataLoss, std::string(archive_->name()) + ": offset " +
                                           std::to_string(offset_) + ": " + what);
}

// False at the end of the archive. A partial block is damage.
Result<bool> TarReader::ReadBlock(std::span<std::byte> block) {
  size_t filled = 0;
  while (filled < block.size()) {
    ASSIGN_OR_RETURN(const size_t got, archive_->Read(block.subspan(filled)));
    if (got == 0) break;
    filled += got;
    offset_ += got;
  }
  if (filled == 0) return false;
  if (filled < block.size()) return Damage("the tar archive is cut here");
  return true;
}

Status TarReader::SkipRest() {
  uint64_t skip = left_ + padding_;
  left_ = padding_ = 0;
  std::array<std::byte, 65536> buffer;
  while (skip > 0) {
    const size_t part = static_cast<size_t>(std::min<uint64_t>(skip, buffer.size()));
    ASSIGN_OR_RETURN(const size_t got, archive_->Read(std::span(buffer).first(part)));
    if (got == 0) return Damage("the tar archive is cut here");
    offset_ += got;
    skip -= got;
  }
  return OkStatus();
}

Result<bool> TarReader::Next() {
  std::string long_name;
  std::array<std::byte, kBlock> block;
  while (true) {
    RETURN_IF_ERROR(SkipRest());
    ASSIGN_OR_RETURN(const bool more, ReadBlock(block));
    if (!more) return false;
    const bool empty =
        std::all_of(block.begin(), block.end(), [](std::byte b) { return b == std::byte{0}; });
    if (empty) return false;  // an archive ends with two such blocks; no file follows the first
    if (!ChecksumIsRight(block)) return Damage("the header of a tar member is damaged");
    const std::optional<uint64_t> size = NumberIn(block, kSizeAt, kSizeBytes);
    if (!size) return Damage("a tar member of no readable size");
    const char type = static_cast<char>(block[kTypeAt]);
    const bool has_content = type == '0' || type == '\0' || type == '7' || type == 'L' ||
                             type == 'x' || type == 'g' || type == 'K';
    left_ = has_content ? *size : 0;
    padding_ = (kBlock - left_ % kBlock) % kBlock;
    if (type == 'L' || type == 'x') {
      std::string text(static_cast<size_t>(std::min(left_, kLongestName)), '\0');
      size_t filled = 0;
      while (filled < text.size()) {
        ASSIGN_OR_RETURN(const size_t got,
                         Read(std::as_writable_bytes(std::span(text).subspan(filled))));
        if (got == 0) return Damage("the tar archive is cut here");
        filled += got;
      }
      long_name = type == 'L' ? std::string(text.c_str()) : PaxPath(text);
      continue;
    }
    if (type != '0' && type != '\0' && type != '7') {
      if (type != 'g' && type != 'K') long_name.clear();
      continue;
    }
    member_bytes_ = *size;
    member_ = long_name;
    if (member_.empty()) {
      const std::string_view prefix = std::memcmp(block.data() + kMagicAt, "ustar\0", 6) == 0
                                          ? Field(block, kPrefixAt, kPrefixBytes)
                                          : std::string_view();
      member_ = std::string(prefix) + (prefix.empty() ? "" : "/") +
                std::string(Field(block, kNameAt, kNameBytes));
    }
    name_ = std::string(archive_->name()) + "/" + member_;
    return true;
  }
}

Result<size_t> TarReader::Read(std::span<std::byte> buffer) {
  if (left_ == 0 || buffer.empty()) return size_t{0};
  const size_t part = static_cast<size_t>(std::min<uint64_t>(left_, buffer.size()));
  ASSIGN_OR_RETURN(const size_t got, archive_->Read(buffer.first(part)));
  if (got == 0) return Damage("the tar archive is cut here");
  left_ -= got;
  offset_ += got;
  return got;
}

Status TarReader::Seek(uint64_t /*offset*/) {
  return Status(StatusCode::kUnimplemented, std::string(name()) + ": lies in an archive");
}

}  // namespace blktape
