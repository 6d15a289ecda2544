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

// The programs' counts of queued bios, by operation and size. One thread.
class QueuedSizes {
 public:
  // `common_fd` is the map "sizes", with one entry per CPU. `rare_fd` is the map "rare_sizes"; the
  // caller owns it and keeps it open.
  Status Open(int common_fd, int rare_fd, size_t cpus);
  void Close();

  // Delivers the counts of bios queued since the last call. Reads only the parts that the programs
  // have changed since then: the counts take 65 KiB per CPU.
  void Report(CaptureSink* sink);

 private:
  struct Counts {
    uint64_t count[BLKTAPE_SIZE_OPS * BLKTAPE_SIZE_SLOTS];
    uint8_t touched[BLKTAPE_SIZE_PARTS];
  };
  static_assert(BLKTAPE_SIZE_PARTS * BLKTAPE_SIZE_PART >= BLKTAPE_SIZE_OPS * BLKTAPE_SIZE_SLOTS);
  static_assert(BLKTAPE_SIZE_PARTS % 8 == 0);  // because the kernel rounds the size of an entry

  void ReportRare(CaptureSink* sink);

  MappedArray<Counts> counts_;
  std::vector<Counts> told_;      // counts already delivered, by CPU
  std::vector<uint64_t> queued_;  // over all CPUs, since the last call; zero between calls
  int rare_fd_ = -1;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> told_rare_;  // counts already delivered, by op
                                                                 // and bytes
};

}  // namespace blktape
