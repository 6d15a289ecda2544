#include "capture/bpf/ring_set.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <string>

namespace blktape {

RingSet::RingSet(int map_fd, uint32_t cpus, Take take) : map_fd_(map_fd), take_(std::move(take)) {
  sources_.reserve(cpus);
  for (uint32_t cpu = 0; cpu < cpus; ++cpu) sources_.push_back({this, cpu});
}

RingSet::~RingSet() {
  if (buffers_ != nullptr) ring_buffer__free(buffers_);
}

Status RingSet::Make(uint64_t bytes) {
  if (bytes > kLargestRingBytes) {
    return Status(StatusCode::kInvalidArgument, "bpf: a ring is at most 1 GiB");
  }
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t rounded = std::bit_ceil(std::max(bytes, page));
  // All or none: where memory is short, what has been made is given back.
  std::vector<UniqueFd> rings;
  for (size_t i = 0; i < sources_.size(); ++i) {
    rings.emplace_back(bpf_map_create(BPF_MAP_TYPE_RINGBUF, "blktape_ring", 0, 0,
                                      static_cast<uint32_t>(rounded), nullptr));
    if (!rings.back()) {
      return ErrnoStatus(errno, "bpf: a ring of " + std::to_string(rounded) + " bytes");
    }
  }
  for (const Source& source : sources_) {
    RETURN_IF_ERROR(Install(source.cpu, std::move(rings[source.cpu])));
  }
  bytes_ = rounded;
  return OkStatus();
}

Status RingSet::Install(uint32_t cpu, UniqueFd ring) {
  const int fd = ring.get();
  if (buffers_ == nullptr) {
    buffers_ = ring_buffer__new(fd, &OnData, &sources_[cpu], nullptr);
    if (buffers_ == nullptr) return ErrnoStatus(errno, "bpf: opening a ring");
  } else if (const int error = ring_buffer__add(buffers_, fd, &OnData, &sources_[cpu]);
             error != 0) {
    return ErrnoStatus(-error, "bpf: opening a ring");
  }
  if (bpf_map_update_elem(map_fd_, &cpu, &fd, BPF_ANY) != 0) {
    return ErrnoStatus(errno, "bpf: installing a ring");
  }
  rings_.push_back(std::move(ring));
  return OkStatus();
}

Result<bool> RingSet::Grow(uint64_t limit_bytes) {
  // The smaller ones stay until the end: together less than the new.
  const uint64_t bytes = bytes_ * 2;
  if (bytes > kLargestRingBytes || bytes * 2 * sources_.size() > limit_bytes) return false;
  RETURN_IF_ERROR(Make(bytes));
  return true;
}

Status RingSet::Wait(int timeout_ms) {
  epoll_event event{};
  if (epoll_wait(ring_buffer__epoll_fd(buffers_), &event, 1, timeout_ms) < 0 && errno != EINTR) {
    return ErrnoStatus(errno, "bpf: waiting for the rings");
  }
  return OkStatus();
}

void RingSet::Drain() { ring_buffer__consume(buffers_); }

int RingSet::OnData(void* context, void* data, size_t bytes) {
  const Source& source = *static_cast<Source*>(context);
  source.set->take_(source.cpu, data, bytes);
  return 0;
}

}  // namespace blktape
