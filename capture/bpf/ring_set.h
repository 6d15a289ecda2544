#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/status.h"

struct ring_buffer;

namespace blktape {

// The rings the programs write to, one a CPU. One thread.
class RingSet {
 public:
  // What a ring held; `data` lives as long as the call.
  using Take = std::function<void(uint32_t cpu, const void* data, size_t bytes)>;

  // `map_fd` is the programs' map of rings by CPU; it stays the caller's and open.
  RingSet(int map_fd, uint32_t cpus, Take take);
  ~RingSet();
  RingSet(const RingSet&) = delete;
  RingSet& operator=(const RingSet&) = delete;

  // Gives each CPU a ring of `bytes`, rounded up to a power of two of at least a page. Those they
  // had before stay, to be read empty. kInvalidArgument beyond kLargestRingBytes.
  Status Make(uint64_t bytes);

  // Makes the rings twice as large. False if all, old ones included, would take more than
  // `limit_bytes`.
  Result<bool> Grow(uint64_t limit_bytes);

  // Waits until a program rings, at most `timeout_ms`.
  Status Wait(int timeout_ms);
  // Hands over all there is. Per CPU in the order written.
  void Drain();

  uint64_t bytes_per_cpu() const { return bytes_; }

  static constexpr uint64_t kLargestRingBytes = 1u << 30;

 private:
  struct Source {
    RingSet* set;
    uint32_t cpu;
  };

  Status Install(uint32_t cpu, UniqueFd ring);
  static int OnData(void* context, void* data, size_t bytes);

  int map_fd_;
  Take take_;
  std::vector<Source> sources_;  // by CPU; never moves, libbpf points into it
  std::vector<UniqueFd> rings_;
  ring_buffer* buffers_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace blktape
