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

  // Delivers what has been queued since the last call. Looks only at the parts of the counts that
  // the programs have touched since: there are 65 KiB of them for each CPU.
  void Report(CaptureSink* sink);

 private:
  struct Counts {
    uint64_t count[BLKTAPE_SIZE_OPS * BLKTAPE_SIZE_SLOTS];
    uint8_t touched[BLKTAPE_SIZE_PARTS];
  };
  static_assert(BLKTAPE_SIZE_PARTS * BLKTAPE_SIZE_PART >= BLKTAPE_SIZE_OPS * BLKTAPE_SIZE_SLOTS);
  static_assert(BLKTAPE_SIZE_PARTS % 8 == 0);  // as the kernel rounds the size of an entry

  void ReportRare(CaptureSink* sink);

  MappedArray<Counts> counts_;
  std::vector<Counts> told_;      // by CPU
  std::vector<uint64_t> queued_;  // of all CPUs, since the last call; zero in between
  int rare_fd_ = -1;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> told_rare_;  // by op and bytes
};

}  // namespace blktape
