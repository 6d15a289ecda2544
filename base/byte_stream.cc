#include "base/byte_stream.h"

#include <algorithm>
#include <cstring>

namespace blktape {

Result<size_t> MemorySource::Read(std::span<std::byte> buffer) {
  const size_t count = std::min(buffer.size(), bytes_.size() - position_);
  if (count > 0) std::memcpy(buffer.data(), bytes_.data() + position_, count);
  position_ += count;
  return count;
}

Status MemorySource::Seek(uint64_t offset) {
  if (offset > bytes_.size()) {
    return Status(StatusCode::kInvalidArgument, name_ + ": seek past the end");
  }
  position_ = offset;
  return OkStatus();
}

Status MemorySink::Write(std::span<const std::byte> bytes) {
  bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return OkStatus();
}

}  // namespace blktape
