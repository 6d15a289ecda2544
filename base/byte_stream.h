#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace blktape {

// Reads bytes in order. Tests inject short reads and faults here. Not thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills at most buffer.size() bytes and returns how many; 0 only at the end.
  virtual Result<size_t> Read(std::span<std::byte> buffer) = 0;
  // The next Read begins at `offset` bytes. kUnimplemented where the source cannot seek (a pipe).
  virtual Status Seek(uint64_t offset) = 0;
  // Size in bytes, or absent where it is not known (a pipe, a growing file).
  virtual std::optional<uint64_t> size_bytes() const = 0;
  // Its name in messages: a path, or "standard input".
  virtual std::string_view name() const = 0;
};

// Writes bytes in order. Not thread-safe.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  // Writes all of `bytes` or fails. After a failure it is unknown how much was written.
  virtual Status Write(std::span<const std::byte> bytes) = 0;
  // When this returns, everything written so far is on stable storage.
  virtual Status Sync() = 0;
  virtual std::string_view name() const = 0;
};

// A source that reads memory owned by the caller.
class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes, std::string name = "memory")
      : bytes_(bytes), name_(std::move(name)) {}
  // A string made for the call would be gone.
  template <std::same_as<std::string> Temporary>
  explicit MemorySource(Temporary&& bytes, std::string name = "memory") = delete;
  Result<size_t> Read(std::span<std::byte> buffer) override;
  Status Seek(uint64_t offset) override;
  std::optional<uint64_t> size_bytes() const override { return bytes_.size(); }
  std::string_view name() const override { return name_; }

 private:
  std::string_view bytes_;
  size_t position_ = 0;
  std::string name_;
};

// A sink that appends to a string of its own.
class MemorySink : public ByteSink {
 public:
  Status Write(std::span<const std::byte> bytes) override;
  Status Sync() override { return OkStatus(); }
  std::string_view name() const override { return "memory"; }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace blktape
