#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "capture/source/block_event.h"

namespace blktape {

// Names of processes, for sources that get each name once. Memory is bounded, because over days
// very many processes come and go: names that are looked up stay, others are dropped. One thread.
class ProcessNames {
 public:
  // Keeps at least the `kept` names that were learned or looked up last, and at most twice as many.
  explicit ProcessNames(size_t kept = 32'768) : kept_(kept) {}

  void Learn(uint32_t pid, const ProcessComm& comm);
  // The name of `pid`; all zeroes if unknown.
  ProcessComm Find(uint32_t pid);

 private:
  size_t kept_;
  std::unordered_map<uint32_t, ProcessComm> young_;
  std::unordered_map<uint32_t, ProcessComm> old_;  // dropped when young_ is full
};

}  // namespace blktape
