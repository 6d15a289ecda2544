#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "capture/source/block_event.h"

namespace blktape {

// What processes are called, for sources that are told each name once. Over days more processes
// come and go than memory is for: who is asked for stays, the others make room. One thread.
class ProcessNames {
 public:
  // Knows at least the `kept` that were learned or asked for last, and at most twice as many.
  explicit ProcessNames(size_t kept = 32'768) : kept_(kept) {}

  void Learn(uint32_t pid, const ProcessComm& comm);
  // All zeroes if not known.
  ProcessComm Find(uint32_t pid);

 private:
  size_t kept_;
  std::unordered_map<uint32_t, ProcessComm> young_;
  std::unordered_map<uint32_t, ProcessComm> old_;  // forgotten when young_ is full
};

}  // namespace blktape
