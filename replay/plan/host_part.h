#pragma once

#include <cstdint>

#include "format/io_record.h"

namespace blktape {

// What a replayed I/O takes longer for its issuer than for the block layer, in ns: from the
// submission until the kernel's request begins, and from its end until the issuer has seen it. It
// is the host's, not the drive's; docs/score.md says how it is measured and taken out.
struct HostPart {
  int64_t transfer_ns = 0;  // of reads, writes and all else but a flush
  int64_t flush_ns = 0;

  // A write with PREFLUSH is issued as a flush and then a write; one without bytes is a flush.
  int64_t Of(Op op, uint32_t flags, uint64_t bytes) const {
    if (op == Op::kFlush) return flush_ns;
    if (op != Op::kWrite || (flags & kFlagPreflush) == 0) return transfer_ns;
    return flush_ns + (bytes > 0 ? transfer_ns : 0);
  }
};

}  // namespace blktape
