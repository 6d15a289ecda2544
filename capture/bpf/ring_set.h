#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "capture/bpf/ring.h"

namespace blktape {

// The rings that the programs write to, one per CPU. One thread.
class RingSet {
 public:
  struct CpuRing {
    uint32_t cpu = 0;
    Ring ring;
    int64_t read_to_ns = 0;  // time of the last record read; maintained by the reader
  };

  // `map_fd` is the programs' map of rings by CPU; the caller owns it and keeps it open.
  RingSet(int map_fd, uint32_t cpus) : map_fd_(map_fd), cpus_(cpus) {}

  // Gives each CPU a ring of `bytes`, rounded up to a power of two of at least a page. Existing
  // rings stay until they are read empty. kInvalidArgument beyond kLargestRingBytes.
  Status Make(uint64_t bytes);

  // Doubles the size of the rings. False if all rings, including the old ones, would take more than
  // `limit_bytes`.
  Result<bool> Grow(uint64_t limit_bytes);

  // Waits until a program signals new data, at most `timeout_ms`.
  Status Wait(int timeout_ms);
  // Calls Ring::Look() of all rings.
  void Look();
  // The rings of one CPU are in the order in which they were made: the smaller ones contain older
  // records.
  std::vector<CpuRing>& rings() { return rings_; }

  // All records before the returned time that were written by `now_ns` can be read. A record that
  // is still being written hides the records after it, and a task that is preempted while writing
  // (Linux 7.0) can take long.
  static int64_t WrittenUntil(std::span<CpuRing> rings, int64_t now_ns);

  uint64_t bytes_per_cpu() const { return bytes_; }

  static constexpr uint64_t kLargestRingBytes = 1u << 30;

 private:
  Status Install(CpuRing ring);

  int map_fd_;
  uint32_t cpus_;
  UniqueFd epoll_;
  std::vector<CpuRing> rings_;
  uint64_t bytes_ = 0;
};

}  // namespace blktape
