#pragma once

#include <linux/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "capture/bpf/block_abi.h"
#include "capture/bpf/mapped_array.h"
#include "capture/source/capture_source.h"

namespace blktape {

// The programs' counts of bios as queued, by operation and size. One thread.
class QueuedSizes {
 public:
  // `common_fd` is the map "sizes" of one entry a CPU; `rare_fd` the map "rare_sizes", which stays
  // the caller's and open.
  Status Open(int common_fd, int rare_fd, size_t cpus);
  void Close();

  // Delivers what has been queued since the last call. Reads thousands of counters.
  void Report(CaptureSink* sink);

 private:
  struct Counts {
    uint64_t count[BLKTAPE_SIZE_OPS][BLKTAPE_SIZE_SLOTS];
  };

  void ReportRare(CaptureSink* sink);

  MappedArray<Counts> counts_;
  std::vector<Counts> told_;  // by CPU
  int rare_fd_ = -1;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> told_rare_;  // by op and bytes
};

}  // namespace blktape
