#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ring_queue.h"
#include "capture/assemble/arrival_queue.h"
#include "capture/source/block_event.h"
#include "format/io_record.h"

namespace blktape {

// A flush that software asked for: a bio without data, with PREFLUSH.
struct AskedFlush {
  int64_t queue_ns = 0;
  ArrivalQueue::Ticket ticket = 0;
  uint32_t flags = 0;
  uint32_t pid = 0;
  uint32_t loss_count = 0;  // number of losses noted before it was queued
  bool own = false;
  ProcessComm comm{};
};

// A flush that the drive received.
struct FlushRequest {
  FinishedIo io;  // has the issue; queue time, pid and process come from `asked` when it leaves
  std::vector<AskedFlush> asked;
  // Its place in the order of arrival, if no bio asked for it.
  std::optional<ArrivalQueue::Ticket> ticket;
  bool own = false;  // caused only by the recorder's own flagged writes
  bool requeued = false;
  uint32_t loss_count = 0;  // number of losses noted before it was issued
};

// Follows one device's flush state machine (the kernel's block/blk-flush.c), as far as events show
// it: one flush of the drive serves every asked flush and every write with PREFLUSH or FUA that is
// waiting when the flush is issued.
class FlushTracker {
 public:
  // The maximum number of waiting flushes; beyond it the oldest is dropped.
  static constexpr size_t kWaitingMax = 65'536;

  void Ask(const AskedFlush& asked) { asked_.push_back(asked); }
  // A data write with PREFLUSH or FUA was queued; without a sector: the empty one with which a
  // layer above begins it (BlockEvent::of_write).
  void FlaggedQueued(std::optional<uint64_t> sector, int64_t ns, bool own);
  // Such a write was issued to the drive. `sequenced`: with flushes before or after it, so that it
  // completes a second time.
  void FlaggedIssued(uint64_t sector, bool sequenced);
  // Such a write was completed by the drive.
  void FlaggedCompleted(uint64_t sector);
  // The drive completed a flush that served `asked` bios.
  void FlushCompleted(size_t asked) { served_ += asked; }
  // A completion without bytes came: the last of a sequence, or of an asked flush. True if it
  // completes an asked flush that no flush of the drive has served, because there was nothing to
  // flush.
  bool SequenceCompleted(uint64_t sector);

  // A flush is issued to the drive: returns its cause. `asked` is empty if no bio asked for it.
  struct Cause {
    std::vector<AskedFlush> asked;
    bool derived = false;  // only flagged writes are waiting for it
    bool own = false;
  };
  Cause Issue(int64_t ns);

  RingQueue<FlushRequest>& in_flight() { return in_flight_; }
  RingQueue<AskedFlush>& asked() { return asked_; }

 private:
  struct Flagged {
    std::optional<uint64_t> sector;
    int64_t queue_ns = 0;
    bool sequenced = true;
    bool own = false;
  };
  // A flagged write whose completion was not seen no longer counts after this time.
  static constexpr int64_t kFlaggedNs = 60'000'000'000;

  RingQueue<AskedFlush> asked_;  // waiting for the drive's next flush
  RingQueue<FlushRequest> in_flight_;
  size_t served_ = 0;             // asked flushes that are served but not yet completed
  std::vector<Flagged> flagged_;  // from queueing to the last completion; there are few
};

}  // namespace blktape
