#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ring_queue.h"
#include "capture/assemble/arrival_queue.h"
#include "capture/source/block_event.h"
#include "format/io_record.h"

namespace blktape {

// A flush that software asked for: a bio with nothing but PREFLUSH.
struct AskedFlush {
  int64_t queue_ns = 0;
  ArrivalQueue::Ticket ticket = 0;
  uint32_t flags = 0;
  uint32_t pid = 0;
  uint32_t loss_count = 0;  // losses noted before it was queued
  bool own = false;
  ProcessComm comm{};
};

// A flush that the drive got.
struct FlushRequest {
  FinishedIo io;  // issue known; queue time, pid and process from `asked` when it leaves
  std::vector<AskedFlush> asked;
  // Its place in order where nobody asked.
  std::optional<ArrivalQueue::Ticket> ticket;
  bool own = false;  // caused by own flagged writes alone
  bool requeued = false;
  uint32_t loss_count = 0;  // losses noted before it was issued
};

// What one device's flush machinery is doing (the kernel's block/blk-flush.c), as far as events
// tell: one flush of the drive serves every asked flush and every write with PREFLUSH or FUA that
// waits when it is issued.
class FlushTracker {
 public:
  // The most that may wait; the oldest is dropped beyond it.
  static constexpr size_t kWaitingMax = 65'536;

  void Ask(const AskedFlush& asked) { asked_.push_back(asked); }
  // A data write with PREFLUSH or FUA was queued.
  void FlaggedQueued(uint64_t sector, int64_t ns, bool own);
  // Such a write went to the drive; `sequenced`: with flushes before or after it, so that it
  // completes a second time.
  void FlaggedIssued(uint64_t sector, bool sequenced);
  // ... was completed by the drive.
  void FlaggedCompleted(uint64_t sector);
  // The drive completed a flush that served `asked` bios.
  void FlushCompleted(size_t asked) { served_ += asked; }
  // A completion without bytes: the last of a sequence, or of an asked flush. True if it is of an
  // asked flush that no flush of the drive has served: there was nothing to flush.
  bool SequenceCompleted(uint64_t sector);

  // The drive gets a flush: says what it is for. `asked` is empty if nobody asked.
  struct Cause {
    std::vector<AskedFlush> asked;
    bool derived = false;  // only flagged writes wait for it
    bool own = false;
  };
  Cause Issue(int64_t ns);

  RingQueue<FlushRequest>& in_flight() { return in_flight_; }
  RingQueue<AskedFlush>& asked() { return asked_; }

 private:
  struct Flagged {
    uint64_t sector = 0;
    int64_t queue_ns = 0;
    bool sequenced = true;
    bool own = false;
  };
  // A flagged write whose end was not seen stops counting after this long.
  static constexpr int64_t kFlaggedNs = 60'000'000'000;

  RingQueue<AskedFlush> asked_;  // waiting for the drive's next flush
  RingQueue<FlushRequest> in_flight_;
  size_t served_ = 0;             // asked flushes whose own completion is still to come
  std::vector<Flagged> flagged_;  // from their queueing to their last completion: few
};

}  // namespace blktape
