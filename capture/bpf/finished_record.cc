#include "capture/bpf/finished_record.h"

#include <cerrno>

#include "base/units.h"

namespace blktape {

// block.bpf.c cannot include io_record.h and repeats these.
static_assert(static_cast<int>(Op::kFlush) == 3 && static_cast<int>(Op::kWriteZeroes) == 4 &&
              static_cast<int>(Op::kSecureErase) == 5 && static_cast<int>(Op::kZoneReset) == 6 &&
              static_cast<int>(Op::kZoneAppend) == 11);
static_assert(kFlagSync == 1 && kFlagFua == 2 && kFlagPreflush == 4 && kFlagMeta == 8 &&
              kFlagReadahead == 16 && kFlagDerived == 32 && kFlagAtomic == 64 &&
              kFlagMapped == 512);

uint32_t ErrnoOfStatus(int32_t status) {
  if (status < 0) return static_cast<uint32_t>(-status);
  switch (status) {
    case 0:
      return 0;
    case 1:
      return EOPNOTSUPP;
    case 2:
      return ETIMEDOUT;
    case 3:
      return ENOSPC;
    case 4:
      return ENOLINK;
    case 5:
      return EREMOTEIO;
    case 6:
      return EBADE;
    case 7:
      return ENODATA;
    case 8:
      return EILSEQ;
    case 9:
      return ENOMEM;
    case 11:
      return EREMCHG;
    case 12:
      return EAGAIN;
    case 13:
      return EBUSY;
    default:
      return EIO;
  }
}

IoRecord RecordOf(const blktape_finished& event) {
  IoRecord record;
  record.device = event.device;
  record.op = static_cast<Op>(event.op);
  record.flags = event.flags;
  if (record.op != Op::kFlush) {
    record.lba = Lba(event.sector);
  } else {
    // A flush that software asks for is a bio with PREFLUSH and SYNC; the record keeps only SYNC.
    record.flags &= ~kFlagPreflush;
  }
  record.bytes = record.op != Op::kFlush ? event.bytes : 0;
  // A derived flush was not queued.
  if (event.start_ns != 0 && (event.flags & kFlagDerived) == 0) {
    record.queue_ns = static_cast<int64_t>(event.start_ns);
  }
  if (event.issue_ns != 0) record.issue_ns = static_cast<int64_t>(event.issue_ns);
  if (event.complete_ns != 0) {
    record.complete_ns = static_cast<int64_t>(event.complete_ns);
    record.error = ErrnoOfStatus(event.status);
  }
  record.pid = event.pid;
  record.cpu = event.cpu;
  if (event.prio != 0) record.prio = event.prio;
  const uint32_t asked = record.op == Op::kFlush ? event.bytes : 0;
  if (asked > 1) record.merged_bios = asked - 1;
  if (event.waker != 0 && record.queue_ns) {
    record.waker = event.waker;
    record.since_wake_ns = uint64_t{event.since_wake & ((1u << BLKTAPE_SHORT_BITS) - 1)}
                           << (event.since_wake >> BLKTAPE_SHORT_BITS);
  }
  return record;
}

IoRecord RecordOf(const blktape_slot& slot) {
  const auto op = static_cast<Op>(slot.op);
  return RecordOf(blktape_finished{.issue_ns = slot.issue_ns,
                                   .start_ns = slot.start_ns,
                                   .complete_ns = 0,
                                   .sector = slot.sector,
                                   .bytes = op == Op::kFlush ? slot.asked : slot.bytes,
                                   .pid = slot.pid,
                                   .waker = slot.waker,
                                   .since_wake = slot.since_wake,
                                   .status = 0,
                                   .flags = slot.flags,
                                   .cpu = slot.cpu,
                                   .prio = slot.prio,
                                   .op = slot.op,
                                   .device = slot.device});
}

}  // namespace blktape
