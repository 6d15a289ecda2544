#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "capture/assemble/arrival_queue.h"
#include "capture/assemble/flush_tracker.h"
#include "capture/assemble/keyed_pool.h"
#include "capture/assemble/loss_book.h"
#include "capture/assemble/pending_bios.h"
#include "capture/source/block_event.h"
#include "format/io_record.h"
#include "format/trace.pb.h"

namespace blktape {

struct IoAssemblerOptions {
  // See CapturePipelineOptions.
  int64_t hold_ns = 30'000'000'000;
  uint32_t hold_records = 262'144;
  // A request that is not complete after this time never will be: kernels give up earlier.
  int64_t give_up_ns = 600'000'000'000;
  // The same if events were lost while the request was open.
  int64_t give_up_after_loss_ns = 10'000'000'000;
  // The maximum number of open bios and requests; beyond it the oldest is given up.
  uint32_t open_max = 262'144;
  // A request issued within this time of the end is still in flight; an older one lost an event.
  int64_t in_flight_ns = 30'000'000'000;
  std::vector<uint32_t> own_pids;
};

// Pairs the events of bios and requests, in order of time, into one record per request:
//
//   Q ... D ... C     queue time, pid and process of the earliest bio in it, issue, completion
//   D ... C           a source without Q, or a bio queued before the recording began
//   Q ... C           of a bio-based device (Introduce)
//
// The addresses of bios show which request they belong to, so merge events are not needed. Each
// request of a split bio gets the bio's queue time. Discards are an exception: one request may
// combine ranges that are not adjacent, and its events contain only the first address and the total
// size. It becomes one record per range; if the bios do not show all ranges, the unknown bytes are
// counted as lost. An event without a partner is counted in `Output`'s losses, never invented: a
// completion without issue, an issue without completion (it leaves as a record without completion,
// like a bio of a bio-based device), a bio that was never issued.
//
// Flushes: a bio without data, with PREFLUSH (an fsync), and the drive's flush that it causes are
// one record. A flush of the drive that only data writes with PREFLUSH or FUA caused, here or in a
// layer above, is kFlagDerived. Such a write completes a second time, without bytes, when its
// flushes are complete; that completion is ignored.
//
// A zone append is issued at the start of its zone and completes at the address where the drive
// wrote it. This identifies zone appends if the events do not name them. Among several of the same
// size in one zone, the first issued is assumed to complete first. The record keeps the address of
// the issue.
//
// Memory: open_max and hold_records. Not thread-safe.
class IoAssembler {
 public:
  class Output {
   public:
    virtual ~Output() = default;
    // Records come in order of arrival, as far as ArrivalQueue holds them back. `record.process` is
    // absent.
    virtual void OnRecord(const FinishedIo& io) = 0;
    // A record caused only by own_pids.
    virtual void OnOwnRecord(const FinishedIo& io) = 0;
    // A bio was queued.
    virtual void OnQueued(const BlockEvent& event) = 0;
    // `loss.device` is an index into the header's devices.
    virtual void OnAssemblerLoss(const proto::Loss& loss) = 0;
  };

  // `output` must outlive the assembler.
  IoAssembler(Output* output, const IoAssemblerOptions& options);

  // Describes device number `device`, as far as pairing depends on it. A device that was not
  // introduced has requests and no zones, and accepts discards of several ranges.
  struct Traits {
    bool bio_based = false;                                 // has no requests
    std::optional<uint32_t> discard_ranges = std::nullopt;  // maximum per request; absent: not
                                                            // known
    uint64_t zone_sectors = 0;                              // 0: no zones
  };
  void Introduce(uint32_t device, const Traits& traits);
  // Replaces own_pids.
  void SetOwnPids(std::vector<uint32_t> pids) { options_.own_pids = std::move(pids); }

  // Adds an event of device number `device` (its index in the header). Events come in order of
  // time; a late one is still paired if its partner is known.
  void Add(uint32_t device, const BlockEvent& event);

  // The current time is `ns`: releases records, and gives up I/Os that are too old.
  void Advance(int64_t ns);

  // Events were lost around `ns` (absent: now): open I/Os may never find their partner.
  void NoteLoss(std::optional<int64_t> ns);

  // The recording has ended: open I/Os leave as they are.
  void Finish();

  uint64_t late_records() const { return arrivals_.late(); }
  uint64_t passthrough() const { return passthrough_; }

 private:
  struct Request {
    FinishedIo io;
    ArrivalQueue::Ticket ticket = 0;
    uint64_t done_bytes = 0;
    uint32_t loss_count = 0;  // number of losses noted before it was issued
    bool requeued = false;
    bool from_bios = false;  // its bios were seen
    bool own = false;
    // For a discard of several ranges: the ranges after the first.
    std::vector<std::pair<Lba, uint64_t>> more_ranges;
    uint64_t unknown_bytes = 0;  // bytes of the request in unknown ranges

    uint64_t total_bytes() const;
  };
  using Pool = KeyedPool<Request>;

  struct Device {
    Traits traits;
    bool has_queue = false;  // Q events were seen
    FlushTracker flushes;
  };

  Device& device(uint32_t index);
  // Whether the device accepts discards of separate ranges in one request; only the bios show those
  // ranges.
  bool GathersRanges(uint32_t device);
  bool IsOwn(uint32_t pid) const;
  BlockEvent NamedOp(uint32_t device, const BlockEvent& event);
  void Queue(uint32_t device, const BlockEvent& event);
  void Issue(uint32_t device, const BlockEvent& event);
  // Takes the bios of a discard and sets the request's ranges, as far as the bios show them.
  void TakeDiscard(uint32_t device, const BlockEvent& event, Request* request);
  void IssueFlush(uint32_t device, const BlockEvent& event);
  // True if `event` reissues a request that is in flight.
  bool Reissue(uint32_t device, const BlockEvent& event);
  void Requeue(uint32_t device, const BlockEvent& event);
  void Complete(uint32_t device, const BlockEvent& event);
  void CompleteFlush(uint32_t device, const BlockEvent& event);
  bool CompleteBio(uint32_t device, const BlockEvent& event);
  // The request that a completion belongs to; kNone if there is none.
  uint32_t FindInFlight(uint32_t device, const BlockEvent& event) const;
  // The same for a zone append, whose completion has another address than its issue.
  uint32_t FindAppend(uint32_t device, const BlockEvent& event);
  void OrphanCompletion(uint32_t device, const BlockEvent& event);
  void Leave(const Request& request);
  void LeaveFlush(const FlushRequest& flush, std::optional<int64_t> complete_ns,
                  std::optional<uint32_t> error);
  void GiveUpOld();
  void GiveUp(uint32_t index, proto::LossReason reason);
  void GiveUpBio(const PendingBio& bio, const IoKey& key, proto::LossReason reason);
  void GiveUpAsked(const AskedFlush& asked, uint32_t device, proto::LossReason reason);
  // The request that represents a bio of a bio-based device.
  static Request RequestOf(const PendingBio& bio, const IoKey& key);
  FinishedIo NewRecord(uint32_t device, const BlockEvent& event) const;

  Output* output_;
  IoAssemblerOptions options_;
  std::vector<Device> devices_;
  PendingBios bios_;
  Pool requests_;
  ArrivalQueue arrivals_;
  LossBook losses_;
  std::vector<PendingBio> taken_;    // scratch of Issue
  std::vector<int64_t> loss_times_;  // times of noted losses that are still ahead, newest first
  uint32_t loss_count_ = 0;
  std::optional<int64_t> first_ns_;
  int64_t previous_ns_ = 0;
  int64_t now_ns_ = 0;
  uint64_t passthrough_ = 0;
};

}  // namespace blktape
