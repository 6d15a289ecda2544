#include "capture/bpf/ring_set.h"

#include <bpf/bpf.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <span>
#include <string>
#include <utility>

namespace blktape {

Status RingSet::Make(uint64_t bytes) {
  if (bytes > kLargestRingBytes) {
    return Status(StatusCode::kInvalidArgument, "bpf: a ring is at most 1 GiB");
  }
  if (!epoll_) {
    epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_) return ErrnoStatus(errno, "bpf: waiting for the rings");
  }
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t rounded = std::bit_ceil(std::max(bytes, page));
  // All or none: if memory is short, the rings made so far are released.
  std::vector<CpuRing> rings(cpus_);
  for (uint32_t cpu = 0; cpu < cpus_; ++cpu) {
    UniqueFd fd(bpf_map_create(BPF_MAP_TYPE_RINGBUF, "blktape_ring", 0, 0,
                               static_cast<uint32_t>(rounded), nullptr));
    if (!fd) return ErrnoStatus(errno, "bpf: a ring of " + std::to_string(rounded) + " bytes");
    rings[cpu].cpu = cpu;
    RETURN_IF_ERROR(rings[cpu].ring.Map(std::move(fd), rounded));
  }
  for (CpuRing& ring : rings) RETURN_IF_ERROR(Install(std::move(ring)));
  bytes_ = rounded;
  return OkStatus();
}

Status RingSet::Install(CpuRing ring) {
  const int fd = ring.ring.fd();
  // Edge-triggered: only a new signal wakes us, not a ring that still has records.
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return ErrnoStatus(errno, "bpf: waiting for a ring");
  }
  if (bpf_map_update_elem(map_fd_, &ring.cpu, &fd, BPF_ANY) != 0) {
    return ErrnoStatus(errno, "bpf: installing a ring");
  }
  rings_.push_back(std::move(ring));
  return OkStatus();
}

Result<bool> RingSet::Grow(uint64_t limit_bytes) {
  // The smaller rings stay until the end: together they are smaller than the new ones.
  const uint64_t bytes = bytes_ * 2;
  if (bytes > kLargestRingBytes || bytes * 2 * cpus_ > limit_bytes) return false;
  RETURN_IF_ERROR(Make(bytes));
  return true;
}

Status RingSet::Wait(int timeout_ms) {
  epoll_event event{};
  if (epoll_wait(epoll_.get(), &event, 1, timeout_ms) < 0 && errno != EINTR) {
    return ErrnoStatus(errno, "bpf: waiting for the rings");
  }
  return OkStatus();
}

void RingSet::Look() {
  for (CpuRing& ring : rings_) ring.ring.Look();
}

int64_t RingSet::WrittenUntil(std::span<CpuRing> rings, int64_t now_ns) {
  int64_t until_ns = now_ns;
  for (CpuRing& one : rings) {
    if (one.ring.Busy()) until_ns = std::min(until_ns, one.read_to_ns);
  }
  return until_ns;
}

}  // namespace blktape
