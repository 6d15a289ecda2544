#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace blktape {

// Buffers for requests in flight, cut from one stretch of memory: what bounds it is the bytes that
// are out, never depth x largest request. A request takes whole pages of 4096 bytes and no more,
// from a free run of pages that is little longer if there is one; runs are one again as soon as
// what lay between them comes back. Runs are filed by their length, four classes to each power of
// two, as in "TLSF: a New Dynamic Memory Allocator for Real-Time Systems" (Masmano et al., ECRTS
// 2004): neither taking nor giving back depends on how many are out. What came back last is taken
// first, so that a small workload touches little. Not thread-safe.
class BufferArena {
 public:
  // `capacity_bytes`: rounded up to whole pages, one at least. Memory is reserved at once and
  // touched as it is first handed out. `extra_bytes`, whole pages, lie behind it and are never
  // handed out: the caller's to use.
  static Result<BufferArena> Create(uint64_t capacity_bytes, uint64_t extra_bytes = 0);
  BufferArena(BufferArena&& other) noexcept;
  BufferArena& operator=(BufferArena&&) = delete;
  ~BufferArena();

  // At least `bytes` > 0, aligned to 4096; null while too much is out. A request beyond the
  // capacity gets memory of its own, but only once everything else came back.
  std::byte* Acquire(uint64_t bytes);
  // What Acquire(bytes) returned.
  void Release(std::byte* buffer, uint64_t bytes);

  // Touches all of it now, so that no first use waits for the kernel to find and clear pages.
  void TouchAll() { Touch(base_, capacity_bytes_); }

  uint64_t out_bytes() const { return out_bytes_; }
  uint64_t capacity_bytes() const { return capacity_bytes_; }
  // More buffers than this are never out at once.
  uint64_t most_buffers() const { return pages_.size(); }
  std::byte* extra() const { return base_ + capacity_bytes_; }
  // All of it and the extra, for registration with an engine.
  std::span<std::byte> memory() const { return {base_, capacity_bytes_ + extra_bytes_}; }

 private:
  // Of a page. Zero everywhere but at the first and the last page of a free run; the links only at
  // the first. A link is the page's number plus one; 0: none.
  struct Page {
    uint32_t run_pages = 0;
    uint32_t next = 0;
    uint32_t previous = 0;
  };
  static constexpr uint32_t kClassesPerPower = 4;
  static constexpr uint32_t kClasses = 32 * kClassesPerPower;

  BufferArena(std::byte* base, uint64_t capacity_bytes, uint64_t extra_bytes);

  static uint32_t ClassOf(uint64_t pages);
  void File(uint64_t first, uint64_t pages);
  // What File() filed.
  void Unfile(uint64_t first);
  // The first page of a run of `pages` at least; false: there is none.
  bool Find(uint64_t pages, uint64_t* first) const;
  void Touch(std::byte* buffer, uint64_t bytes);

  std::byte* base_;
  uint64_t capacity_bytes_;
  uint64_t extra_bytes_;
  uint64_t touched_bytes_ = 0;  // everything below was handed out before
  uint64_t out_bytes_ = 0;
  std::vector<Page> pages_;
  std::array<uint32_t, kClasses> heads_ = {};           // links
  std::array<uint64_t, kClasses / 64> not_empty_ = {};  // a bit for each class
};

}  // namespace blktape
