#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace blktape {

// Buffers for requests in flight, cut from one stretch of memory by halving (a buddy system): what
// bounds it is the bytes that are out, never depth x largest request. Blocks are powers of two from
// 4096 bytes on, aligned to 4096. Lowest addresses first, so that a small workload touches little.
// Not thread-safe.
class BufferArena {
 public:
  // `capacity_bytes`: rounded up to a power of two, at least 4096. Memory is reserved at once and
  // touched as it is first handed out. `extra_bytes`, whole pages, lie behind it and are never
  // handed out: the caller's to use.
  static Result<BufferArena> Create(uint64_t capacity_bytes, uint64_t extra_bytes = 0);
  BufferArena(BufferArena&& other) noexcept;
  BufferArena& operator=(BufferArena&&) = delete;
  ~BufferArena();

  // At least `bytes` > 0; null while too much is out. A request beyond the capacity gets memory of
  // its own, but only once everything else came back.
  std::byte* Acquire(uint64_t bytes);
  // What Acquire(bytes) returned.
  void Release(std::byte* buffer, uint64_t bytes);

  // Touches all of it now, so that no first use waits for the kernel to find and clear pages.
  void TouchAll() { Touch(base_, capacity_bytes_); }

  uint64_t out_bytes() const { return out_bytes_; }
  uint64_t capacity_bytes() const { return capacity_bytes_; }
  std::byte* extra() const { return base_ + capacity_bytes_; }
  // All of it and the extra, for registration with an engine.
  std::span<std::byte> memory() const { return {base_, capacity_bytes_ + extra_bytes_}; }

 private:
  BufferArena(std::byte* base, uint64_t capacity_bytes, uint64_t extra_bytes);

  int LevelOf(uint64_t bytes) const;  // 0: 4096 bytes, 1: 8192 ...
  uint64_t BlockBytes(int level) const { return uint64_t{4096} << level; }
  void Touch(std::byte* buffer, uint64_t bytes);

  // A bitmap a level (one bit a block), how many blocks are free, and the lowest word that may have
  // one of them.
  struct Level {
    std::vector<uint64_t> free;
    size_t free_blocks = 0;
    size_t hint = 0;
  };
  bool IsFree(int level, uint64_t block) const;
  void SetFree(int level, uint64_t block);
  void ClearFree(int level, uint64_t block);
  bool LowestFree(int level, uint64_t* block);

  std::byte* base_;
  uint64_t capacity_bytes_;
  uint64_t extra_bytes_;
  uint64_t touched_bytes_ = 0;  // everything below was handed out before
  uint64_t out_bytes_ = 0;
  std::vector<Level> levels_;
};

}  // namespace blktape
