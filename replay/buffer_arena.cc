#include "replay/buffer_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/check.h"

namespace blktape {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kHugePageBytes = 2 << 20;

void* MapPages(uint64_t bytes) {
  return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
              -1, 0);
}

// On huge pages where the kernel has them: a large request is then a few segments in memory, not
// one for each 4 KiB, which costs less to submit, and the driver's max_segments does not split it.
void* MapHugePages(uint64_t bytes) {
  void* const mapped = MapPages(bytes + kHugePageBytes);
  if (mapped == MAP_FAILED) return mapped;
  auto* const start = static_cast<std::byte*>(mapped);
  const uint64_t over = reinterpret_cast<uintptr_t>(start) % kHugePageBytes;
  const uint64_t skipped = over == 0 ? 0 : kHugePageBytes - over;
  if (skipped > 0) munmap(start, skipped);
  munmap(start + skipped + bytes, kHugePageBytes - skipped);
  (void)madvise(start + skipped, bytes, MADV_HUGEPAGE);
  return start + skipped;
}

uint64_t WholePages(uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

}  // namespace

Result<BufferArena> BufferArena::Create(uint64_t capacity_bytes, uint64_t extra_bytes) {
  BLKTAPE_CHECK(extra_bytes % kPageBytes == 0);
  const uint64_t capacity = std::bit_ceil(std::max(capacity_bytes, kPageBytes));
  const uint64_t all = capacity + extra_bytes;
  void* base = all < kHugePageBytes ? MapPages(all) : MapHugePages(all);
  if (base == MAP_FAILED) return ErrnoStatus(errno, "reserving memory for requests in flight");
  return BufferArena(static_cast<std::byte*>(base), capacity, extra_bytes);
}

BufferArena::BufferArena(std::byte* base, uint64_t capacity_bytes, uint64_t extra_bytes)
    : base_(base), capacity_bytes_(capacity_bytes), extra_bytes_(extra_bytes) {
  const uint64_t pages = capacity_bytes / kPageBytes;
  levels_.resize(std::bit_width(pages));
  for (size_t level = 0; level < levels_.size(); ++level) {
    levels_[level].free.resize(((pages >> level) + 63) / 64);
  }
  SetFree(static_cast<int>(levels_.size()) - 1, 0);
}

BufferArena::BufferArena(BufferArena&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      capacity_bytes_(other.capacity_bytes_),
      extra_bytes_(other.extra_bytes_),
      touched_bytes_(other.touched_bytes_),
      out_bytes_(other.out_bytes_),
      levels_(std::move(other.levels_)) {}

BufferArena::~BufferArena() {
  if (base_ != nullptr) munmap(base_, capacity_bytes_ + extra_bytes_);
}

int BufferArena::LevelOf(uint64_t bytes) const {
  return static_cast<int>(std::bit_width((std::max<uint64_t>(bytes, 1) - 1) / kPageBytes));
}

bool BufferArena::IsFree(int level, uint64_t block) const {
  return (levels_[level].free[block / 64] >> (block % 64)) & 1;
}
void BufferArena::SetFree(int level, uint64_t block) {
  levels_[level].free[block / 64] |= uint64_t{1} << (block % 64);
  ++levels_[level].free_blocks;
  levels_[level].hint = std::min<size_t>(levels_[level].hint, block / 64);
}
void BufferArena::ClearFree(int level, uint64_t block) {
  levels_[level].free[block / 64] &= ~(uint64_t{1} << (block % 64));
  --levels_[level].free_blocks;
}
bool BufferArena::LowestFree(int level, uint64_t* block) {
  Level& at = levels_[level];
  if (at.free_blocks == 0) return false;
  for (; at.hint < at.free.size(); ++at.hint) {
    if (at.free[at.hint] != 0) {
      *block = at.hint * 64 + std::countr_zero(at.free[at.hint]);
      return true;
    }
  }
  return false;
}

void BufferArena::Touch(std::byte* buffer, uint64_t bytes) {
  const uint64_t end = static_cast<uint64_t>(buffer - base_) + bytes;
  for (uint64_t at = std::max<uint64_t>(touched_bytes_, buffer - base_); at < end;
       at += kPageBytes) {
    *static_cast<volatile std::byte*>(base_ + at) = std::byte{0};
  }
  touched_bytes_ = std::max(touched_bytes_, end);
}

std::byte* BufferArena::Acquire(uint64_t bytes) {
  BLKTAPE_CHECK(bytes > 0);
  const int level = LevelOf(bytes);
  if (level >= static_cast<int>(levels_.size())) {
    if (out_bytes_ > 0) return nullptr;
    void* own = MapHugePages(WholePages(bytes));
    if (own == MAP_FAILED) return nullptr;
    out_bytes_ += bytes;
    return static_cast<std::byte*>(own);
  }
  uint64_t block = 0;
  int from = level;
  while (from < static_cast<int>(levels_.size()) && !LowestFree(from, &block)) ++from;
  if (from == static_cast<int>(levels_.size())) return nullptr;
  ClearFree(from, block);
  while (from > level) {
    --from;
    block *= 2;
    SetFree(from, block + 1);
  }
  out_bytes_ += BlockBytes(level);
  std::byte* buffer = base_ + block * BlockBytes(level);
  Touch(buffer, BlockBytes(level));
  return buffer;
}

void BufferArena::Release(std::byte* buffer, uint64_t bytes) {
  int level = LevelOf(bytes);
  if (level >= static_cast<int>(levels_.size())) {
    munmap(buffer, WholePages(bytes));
    out_bytes_ -= bytes;
    return;
  }
  out_bytes_ -= BlockBytes(level);
  uint64_t block = static_cast<uint64_t>(buffer - base_) / BlockBytes(level);
  BLKTAPE_CHECK(!IsFree(level, block));
  while (level + 1 < static_cast<int>(levels_.size()) && IsFree(level, block ^ 1)) {
    ClearFree(level, block ^ 1);
    block /= 2;
    ++level;
  }
  SetFree(level, block);
}

}  // namespace blktape
