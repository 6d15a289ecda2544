#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/units.h"

namespace blktape {

// Until when a write is held that was submitted after a flush of the same block device. A flush is
// a blocking call, so another thread makes it, some 50 us later; a write needs no such thread and
// would reach the drive first, though whoever recorded them had the flush there before. So the
// write keeps its distance from the flush, but no more than the flush needs from its call to the
// driver: the block layer (blk_kick_flush in block/blk-flush.c) hands it to a kernel worker. Of
// the latest flush; times in ns on one clock. Pure.
class WriteHold {
 public:
  // A flush is handed to the thread that will make it.
  void Handed(int64_t now_ns) { handed_ns_ = now_ns; }
  // Whether a flush was handed over recently enough to hold anything.
  bool MayHold(int64_t now_ns) const { return handed_ns_ && now_ns - *handed_ns_ < kLongestNs; }
  // Whether a write submitted at `write_ns` is still held; `begun_ns`: when the flush was called.
  bool Holds(int64_t write_ns, int64_t now_ns, std::optional<int64_t> begun_ns) const {
    if (!MayHold(now_ns)) return false;
    return !begun_ns || now_ns < *begun_ns + std::min(write_ns - *handed_ns_, kReachesDriverNs);
  }

  static constexpr int64_t kReachesDriverNs = 40 * kNanosPerMicro;
  // A thread that has not run by then is held up by others.
  static constexpr int64_t kLongestNs = 300 * kNanosPerMicro;

 private:
  std::optional<int64_t> handed_ns_;
};

}  // namespace blktape
