#pragma once

#include "format/io_record.h"

namespace blktape {

// The classes of docs/score.md: of I/O that somebody waits for, and none.
enum class WaitClass { kSmallRead = 0, kLargeRead = 1, kSyncWriteOrFlush = 2, kBackground = 3 };
inline constexpr int kWaitClasses = 3;  // without kBackground

inline constexpr uint64_t kSmallReadBytes = 16 * 1024;

// A flush that the block layer derived from a flagged write is part of that write: nobody waits for
// it apart, and a replay does not issue it.
inline WaitClass WaitClassOf(const IoRecord& io) {
  if (!IsForeground(io) || (io.flags & kFlagDerived) != 0) return WaitClass::kBackground;
  if (io.op != Op::kRead) return WaitClass::kSyncWriteOrFlush;
  return io.bytes <= kSmallReadBytes ? WaitClass::kSmallRead : WaitClass::kLargeRead;
}

}  // namespace blktape
