#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"
#include "format/io_record.h"

namespace blktape {

// After a pause the host takes longer: caches are cold, the CPU of whoever is to be woken is idle.
// Up to about here it grows with the pause.
inline constexpr int64_t kHostPauseNs = 5 * kNanosPerMilli;

// What a replayed I/O takes longer for its issuer than for the block layer, in ns.
struct HostCost {
  int64_t at_once_ns = 0;      // right after another one
  int64_t after_pause_ns = 0;  // of kHostPauseNs or longer

  // In proportion to the pause in between.
  int64_t After(int64_t pause_ns) const {
    const int64_t counted_ns = std::clamp<int64_t>(pause_ns, 0, kHostPauseNs);
    return at_once_ns + (after_pause_ns - at_once_ns) * counted_ns / kHostPauseNs;
  }
};

// A write with PREFLUSH is issued as a flush and then a write; one without bytes is a flush.
inline bool BeginsWithFlush(Op op, uint32_t flags) {
  return op == Op::kFlush || (op == Op::kWrite && (flags & kFlagPreflush) != 0);
}

// Of one target: from the submission until the kernel's request begins, and from its end until the
// issuer has seen it. It is the host's, not the drive's; docs/score.md says how it is measured and
// taken out.
struct HostPart {
  HostCost transfer;  // of reads, writes and all else but a flush
  HostCost flush;
  bool has_fua = true;  // the target

  // `pause_ns`: IssuedIo::pause_ns.
  int64_t Of(Op op, uint32_t flags, uint64_t bytes, int64_t pause_ns) const {
    if (!BeginsWithFlush(op, flags)) return transfer.After(pause_ns);
    if (op == Op::kFlush) return flush.After(pause_ns);
    const int more_flushes = FlushesFirst(flags, has_fua) - 1;
    return flush.After(pause_ns) + more_flushes * flush.at_once_ns +
           (bytes > 0 ? transfer.at_once_ns : 0);
  }
};

}  // namespace blktape
