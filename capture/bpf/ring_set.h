#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "capture/bpf/ring.h"

namespace blktape {

// The rings the programs write to, one a CPU. One thread.
class RingSet {
 public:
  struct CpuRing {
    uint32_t cpu = 0;
    Ring ring;
    int64_t read_to_ns = 0;  // the time of the last record read; the reader's to keep
  };

  // `map_fd` is the programs' map of rings by CPU; it stays the caller's and open.
  RingSet(int map_fd, uint32_t cpus) : map_fd_(map_fd), cpus_(cpus) {}

  // Gives each CPU a ring of `bytes`, rounded up to a power of two of at least a page. Those they
  // had before stay, to be read empty. kInvalidArgument beyond kLargestRingBytes.
  Status Make(uint64_t bytes);

  // Makes the rings twice as large. False if all, old ones included, would take more than
  // `limit_bytes`.
  Result<bool> Grow(uint64_t limit_bytes);

  // Waits until a program rings, at most `timeout_ms`.
  Status Wait(int timeout_ms);
  // Ring::Look() of all.
  void Look();
  // Those of a CPU follow each other as they were made: what a smaller one holds is older.
  std::vector<CpuRing>& rings() { return rings_; }

  // Until when what was written by `now_ns` can be read. A record that is being written hides those
  // behind it; a task that is preempted meanwhile (Linux 7.0) can take long over it.
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
