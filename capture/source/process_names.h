#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "capture/source/block_event.h"

namespace blktape {

// Names of processes, for sources that get each name once. Memory is bounded, because over days
// very many processes come and go: names that are looked up stay, others are dropped. One thread.
class ProcessNames {
 public:
  // Keeps at least the `kept` names that were learned or looked up last, and at most twice as many.
  explicit ProcessNames(size_t kept = 32'768) : kept_(kept) {}

  // `pid` has this name from `since_ns` on; later than it was called before.
  void Learn(uint32_t pid, int64_t since_ns, const ProcessComm& comm);
  // What `pid` was called then, of its last kPerProcess names; all zeroes if unknown. A process has
  // several where it executes another program, or where a new one has the pid of one that is gone.
  ProcessComm Find(uint32_t pid, int64_t at_ns);

  static constexpr size_t kPerProcess = 4;

 private:
  struct Name {
    int64_t since_ns;
    ProcessComm comm;
  };
  using Names = std::vector<Name>;  // in the order of time

  // Those of `pid`, which stay for longer then.
  Names* NamesOf(uint32_t pid);

  size_t kept_;
  std::unordered_map<uint32_t, Names> young_;
  std::unordered_map<uint32_t, Names> old_;  // dropped when young_ is full
};

}  // namespace blktape
