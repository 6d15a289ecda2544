#include "capture/bpf/ring.h"

#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

namespace blktape {

Ring::Ring(Ring&& other) noexcept
    : fd_(std::move(other.fd_)),
      bytes_(other.bytes_),
      page_bytes_(other.page_bytes_),
      consumed_(std::exchange(other.consumed_, nullptr)),
      produced_(std::exchange(other.produced_, nullptr)),
      position_(other.position_),
      end_(other.end_) {}

Ring::~Ring() {
  if (consumed_ != nullptr) munmap(consumed_, page_bytes_);
  if (produced_ != nullptr) munmap(produced_, page_bytes_ + 2 * bytes_);
}

Status Ring::Map(UniqueFd fd, uint64_t bytes) {
  page_bytes_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const consumed =
      mmap(nullptr, page_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (consumed == MAP_FAILED) return ErrnoStatus(errno, "bpf: mapping a ring");
  consumed_ = static_cast<uint64_t*>(consumed);
  void* const produced = mmap(nullptr, page_bytes_ + 2 * bytes, PROT_READ, MAP_SHARED, fd.get(),
                              static_cast<off_t>(page_bytes_));
  if (produced == MAP_FAILED) return ErrnoStatus(errno, "bpf: mapping a ring");
  produced_ = static_cast<std::byte*>(produced);
  bytes_ = bytes;
  fd_ = std::move(fd);
  position_ = end_ = *consumed_;
  return OkStatus();
}

void Ring::Look() {
  end_ = std::atomic_ref(*reinterpret_cast<uint64_t*>(produced_)).load(std::memory_order_acquire);
}

const uint32_t* Ring::Header() const {
  return reinterpret_cast<const uint32_t*>(produced_ + page_bytes_ + (position_ & (bytes_ - 1)));
}

std::span<const std::byte> Ring::Front() {
  while (position_ < end_) {
    const uint32_t* const header = Header();
    const uint32_t length =
        std::atomic_ref(*const_cast<uint32_t*>(header)).load(std::memory_order_acquire);
    if ((length & BPF_RINGBUF_BUSY_BIT) != 0) return {};
    if ((length & BPF_RINGBUF_DISCARD_BIT) == 0) {
      return {reinterpret_cast<const std::byte*>(header) + BPF_RINGBUF_HDR_SZ, length};
    }
    Pop();
  }
  return {};
}

void Ring::Pop() {
  const uint64_t length = *Header() & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
  position_ += (length + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
}

void Ring::Release() { std::atomic_ref(*consumed_).store(position_, std::memory_order_release); }

bool Ring::Busy() { return Front().empty() && position_ < end_; }

}  // namespace blktape
