#pragma once

#include <cstdint>
#include <string_view>

#include "capture/source/block_event.h"
#include "format/io_record.h"

namespace blktape {

// The "rwbs" string of the kernel's block events: [F]op[F][A][S][M][U], F before the op is
// PREFLUSH, F after it is FUA. Op: R, W, D, F (flush), N (none of these), DE (secure erase), WZ
// (write zeroes), Z with a letter or two (zones, recent kernels).
struct Rwbs {
  Op op = Op::kRead;
  uint32_t flags = 0;
  // "N": a passthrough command, or an op that this kernel has no letter for (write zeroes).
  bool none = false;
};
Rwbs ParseRwbs(std::string_view text);

// Makes all decoders represent flushes in the same way: a bio or request with no data and PREFLUSH
// becomes Op::kFlush, without an address and without the PREFLUSH flag.
inline void NormalizeFlush(BlockEvent* event) {
  if (event->op == Op::kWrite && event->bytes == 0 && (event->flags & kFlagPreflush) != 0) {
    event->op = Op::kFlush;
  }
  if (event->op == Op::kFlush) {
    event->flags &= ~kFlagPreflush;
    event->lba = Lba();
    event->bytes = 0;
  }
}

}  // namespace blktape
