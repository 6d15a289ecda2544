#include "replay/issue/buffer_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <limits>
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

uint64_t Pages(uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes; }

}  // namespace

Result<BufferArena> BufferArena::Create(uint64_t capacity_bytes, uint64_t extra_bytes) {
  BLKTAPE_CHECK(extra_bytes % kPageBytes == 0);
  const uint64_t pages = Pages(std::max<uint64_t>(capacity_bytes, 1));
  if (pages >= std::numeric_limits<uint32_t>::max()) {
    return ErrnoStatus(ENOMEM, "reserving memory for requests in flight");
  }
  const uint64_t all = pages * kPageBytes + extra_bytes;
  void* base = all < kHugePageBytes ? MapPages(all) : MapHugePages(all);
  if (base == MAP_FAILED) return ErrnoStatus(errno, "reserving memory for requests in flight");
  return BufferArena(static_cast<std::byte*>(base), pages * kPageBytes, extra_bytes);
}

BufferArena::BufferArena(std::byte* base, uint64_t capacity_bytes, uint64_t extra_bytes)
    : base_(base),
      capacity_bytes_(capacity_bytes),
      extra_bytes_(extra_bytes),
      pages_(capacity_bytes / kPageBytes) {
  File(0, pages_.size());
}

BufferArena::BufferArena(BufferArena&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      capacity_bytes_(other.capacity_bytes_),
      extra_bytes_(other.extra_bytes_),
      touched_bytes_(other.touched_bytes_),
      out_bytes_(other.out_bytes_),
      pages_(std::move(other.pages_)),
      heads_(other.heads_),
      not_empty_(other.not_empty_) {}

BufferArena::~BufferArena() {
  if (base_ != nullptr) munmap(base_, capacity_bytes_ + extra_bytes_);
}

// By the highest bit of the length and the two behind it.
uint32_t BufferArena::ClassOf(uint64_t pages) {
  const auto power = static_cast<uint32_t>(std::bit_width(pages)) - 1;
  const uint64_t quarters = (pages * kClassesPerPower) >> power;  // 4 to 7
  return power * kClassesPerPower + static_cast<uint32_t>(quarters) - kClassesPerPower;
}

void BufferArena::File(uint64_t first, uint64_t pages) {
  const uint32_t filed = ClassOf(pages);
  const uint32_t next = heads_[filed];
  const auto length = static_cast<uint32_t>(pages);
  const auto link = static_cast<uint32_t>(first + 1);
  pages_[first + pages - 1].run_pages = length;
  pages_[first] = {.run_pages = length, .next = next, .previous = 0};
  if (next != 0) pages_[next - 1].previous = link;
  heads_[filed] = link;
  not_empty_[filed / 64] |= uint64_t{1} << (filed % 64);
}

void BufferArena::Unfile(uint64_t first) {
  const Page page = pages_[first];
  const uint32_t filed = ClassOf(page.run_pages);
  if (page.next != 0) pages_[page.next - 1].previous = page.previous;
  if (page.previous != 0) {
    pages_[page.previous - 1].next = page.next;
  } else {
    heads_[filed] = page.next;
    if (page.next == 0) not_empty_[filed / 64] &= ~(uint64_t{1} << (filed % 64));
  }
  pages_[first + page.run_pages - 1] = {};
  pages_[first] = {};
}

bool BufferArena::Find(uint64_t pages, uint64_t* first) const {
  // In a class above that of the length every run is long enough; in its own not all are.
  const uint32_t own = ClassOf(pages);
  for (uint32_t link = heads_[own]; link != 0; link = pages_[link - 1].next) {
    *first = link - 1;
    if (pages_[*first].run_pages >= pages) return true;
  }
  for (uint32_t from = own + 1; from < kClasses; from = (from / 64 + 1) * 64) {
    const uint64_t classes = not_empty_[from / 64] >> (from % 64);
    if (classes == 0) continue;
    *first = heads_[from + std::countr_zero(classes)] - 1;
    return true;
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
  const uint64_t pages = Pages(bytes);
  std::byte* buffer = nullptr;
  if (pages > pages_.size()) {
    if (out_bytes_ > 0) return nullptr;
    void* own = MapHugePages(pages * kPageBytes);
    if (own == MAP_FAILED) return nullptr;
    buffer = static_cast<std::byte*>(own);
  } else {
    uint64_t first = 0;
    if (!Find(pages, &first)) return nullptr;
    const uint64_t rest = pages_[first].run_pages - pages;
    Unfile(first);
    if (rest > 0) File(first + pages, rest);
    buffer = base_ + first * kPageBytes;
    Touch(buffer, pages * kPageBytes);
  }
  out_bytes_ += pages * kPageBytes;
  return buffer;
}

void BufferArena::Release(std::byte* buffer, uint64_t bytes) {
  uint64_t pages = Pages(bytes);
  out_bytes_ -= pages * kPageBytes;
  if (pages > pages_.size()) {
    munmap(buffer, pages * kPageBytes);
    return;
  }
  uint64_t first = static_cast<uint64_t>(buffer - base_) / kPageBytes;
  BLKTAPE_CHECK(pages_[first].run_pages == 0);
  if (const uint64_t after = first + pages; after < pages_.size()) {
    const uint64_t run = pages_[after].run_pages;
    if (run != 0) Unfile(after);
    pages += run;
  }
  if (const uint64_t run = first == 0 ? 0 : pages_[first - 1].run_pages; run != 0) {
    first -= run;
    Unfile(first);
    pages += run;
  }
  File(first, pages);
}

}  // namespace blktape
