#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/byte_stream.h"
#include "base/status.h"

namespace blktape {

// Whether `head`, at least the first 512 bytes of a file, is the start of a tar archive: POSIX
// ustar or GNU, with a correct header checksum.
bool LooksLikeTar(std::span<const std::byte> head);

// Reads the regular files of a tar archive in order. Next() goes to the next file; the reader is
// then a ByteSource of that file's content. Links, folders and special files are skipped. Long
// names of GNU and POSIX (pax) archives are supported. No file is ever created or opened by a name
// from the archive. Not thread-safe.
class TarReader : public ByteSource {
 public:
  // `archive` must outlive the reader and be at its start.
  explicit TarReader(ByteSource* archive) : archive_(archive) {}

  // False at the end of the archive. kDataLoss, with the byte offset, if the archive is damaged or
  // truncated.
  Result<bool> Next();

  // The current file's name in the archive, and its size.
  const std::string& member() const { return member_; }
  uint64_t member_bytes() const { return member_bytes_; }

  Result<size_t> Read(std::span<std::byte> buffer) override;
  Status Seek(uint64_t offset) override;
  std::optional<uint64_t> size_bytes() const override { return member_bytes_; }
  // "archive.tar.xz/folder/file".
  std::string_view name() const override { return name_; }

 private:
  Result<bool> ReadBlock(std::span<std::byte> block);
  Status SkipRest();
  Status Damage(const std::string& what) const;

  ByteSource* archive_;
  uint64_t offset_ = 0;   // in the archive
  uint64_t left_ = 0;     // of the file's content
  uint64_t padding_ = 0;  // after it
  uint64_t member_bytes_ = 0;
  std::string member_;
  std::string name_;
};

}  // namespace blktape
