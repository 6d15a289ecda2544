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
  // A request that is not complete after this long never will be: kernels give up before.
  int64_t give_up_ns = 600'000'000'000;
  // The same where events were lost while it was open.
  int64_t give_up_after_loss_ns = 10'000'000'000;
  // Bios and requests open at once; beyond it the oldest is given up.
  uint32_t open_max = 262'144;
  // Who is open this short before the end was simply not done; who is open longer lost an event.
  int64_t in_flight_ns = 30'000'000'000;
  std::vector<uint32_t> own_pids;
};

// Pairs the events of bios and requests, in order of time, into one record per request:
//
//   Q ... D ... C     queue time, pid and process of the earliest bio in it, issue, completion
//   D ... C           a source without Q, or a bio queued before the recording began
//   Q ... C           of a bio-based device (Introduce)
//
// Which bios a request is made of is told by where they lie, so merges need no event of their own;
// a bio that was split gives each of its requests its queue time. Discards are an exception: one
// request may gather ranges that lie apart, and tells the first address and the sum. It becomes a
// record a range; where its bios do not tell the ranges, what is not known is counted instead. What
// has no partner is counted in `Output`'s losses, never invented: a completion without issue, an
// issue without completion (it leaves as a record without completion, as does a bio of a bio-based
// device), a bio that was never issued.
//
// Flushes: a bio with nothing but PREFLUSH (an fsync) and the drive's flush it causes are one
// record; a flush of the drive that only data writes with PREFLUSH or FUA have caused is
// kFlagDerived; such a write completes once more, without bytes, when its flushes are done:
// ignored.
//
// A zone append is issued at the beginning of its zone and completes where the drive put it; that
// is how it is told where the events do not name it. Of several of one size in one zone the first
// issued completes first. Its record keeps the address it was issued with.
//
// Memory: open_max and hold_records. Not thread-safe.
class IoAssembler {
 public:
  class Output {
   public:
    virtual ~Output() = default;
    // In order of arrival, as far as ArrivalQueue holds. `record.process` is absent.
    virtual void OnRecord(const FinishedIo& io) = 0;
    // `own`: caused only by own_pids.
    virtual void OnOwnRecord(const FinishedIo& io) = 0;
    // A bio was queued.
    virtual void OnQueued(const BlockEvent& event) = 0;
    // `loss.device` is a place in the header's devices.
    virtual void OnAssemblerLoss(const proto::Loss& loss) = 0;
  };

  // `output` must outlive the assembler.
  IoAssembler(Output* output, const IoAssemblerOptions& options);

  // What device number `device` is, as far as pairing depends on it. One that was not introduced
  // has requests, no zones, and takes discards of several ranges.
  struct Traits {
    bool bio_based = false;                                 // has no requests
    std::optional<uint32_t> discard_ranges = std::nullopt;  // of a request; absent: not known
    uint64_t zone_sectors = 0;                              // 0: no zones
  };
  void Introduce(uint32_t device, const Traits& traits);
  // In place of own_pids.
  void SetOwnPids(std::vector<uint32_t> pids) { options_.own_pids = std::move(pids); }

  // `event` happened on device number `device` (its place in the header). Events come in order of
  // time; one that is late is paired all the same where its partner is still known.
  void Add(uint32_t device, const BlockEvent& event);

  // Time has come to `ns`: lets records leave, gives up what is too old.
  void Advance(int64_t ns);

  // Events were lost around `ns` (now, if not known): what is open may never find its partner.
  void NoteLoss(std::optional<int64_t> ns);

  // The recording has ended: what is open leaves as it is.
  void Finish();

  uint64_t late_records() const { return arrivals_.late(); }
  uint64_t passthrough() const { return passthrough_; }

 private:
  struct Request {
    FinishedIo io;
    ArrivalQueue::Ticket ticket = 0;
    uint64_t done_bytes = 0;
    uint32_t loss_count = 0;  // losses noted before it was issued
    bool requeued = false;
    bool from_bios = false;  // its bios are known
    bool own = false;
    // A discard of several ranges: those beyond the first.
    std::vector<std::pair<Lba, uint64_t>> more_ranges;
    uint64_t unknown_bytes = 0;  // of it, in ranges that are not known

    uint64_t total_bytes() const;
  };
  using Pool = KeyedPool<Request>;

  struct Device {
    Traits traits;
    bool has_queue = false;  // Q events come
    FlushTracker flushes;
  };

  Device& device(uint32_t index);
  // Whether the device takes discards that lie apart in one request, which only its bios tell.
  bool GathersRanges(uint32_t device);
  bool IsOwn(uint32_t pid) const;
  BlockEvent NamedOp(uint32_t device, const BlockEvent& event);
  void Queue(uint32_t device, const BlockEvent& event);
  void Issue(uint32_t device, const BlockEvent& event);
  // Takes the bios of a discard; says which ranges the request has, as far as they tell.
  void TakeDiscard(uint32_t device, const BlockEvent& event, Request* request);
  void IssueFlush(uint32_t device, const BlockEvent& event);
  // True if `event` issues a request again that is in flight.
  bool Reissue(uint32_t device, const BlockEvent& event);
  void Requeue(uint32_t device, const BlockEvent& event);
  void Complete(uint32_t device, const BlockEvent& event);
  void CompleteFlush(uint32_t device, const BlockEvent& event);
  bool CompleteBio(uint32_t device, const BlockEvent& event);
  // The request that a completion belongs to, kNone if there is none.
  uint32_t FindInFlight(uint32_t device, const BlockEvent& event) const;
  // The same of a zone append, of which the event tells another address than its issue.
  uint32_t FindAppend(uint32_t device, const BlockEvent& event);
  void OrphanCompletion(uint32_t device, const BlockEvent& event);
  void Leave(const Request& request);
  void LeaveFlush(const FlushRequest& flush, std::optional<int64_t> complete_ns,
                  std::optional<uint32_t> error);
  void GiveUpOld();
  void GiveUp(uint32_t index, proto::LossReason reason);
  void GiveUpBio(const PendingBio& bio, const IoKey& key, proto::LossReason reason);
  void GiveUpAsked(const AskedFlush& asked, uint32_t device, proto::LossReason reason);
  // What a bio is to a device that has no requests.
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
  std::vector<int64_t> loss_times_;  // noted losses whose time has not come, newest first
  uint32_t loss_count_ = 0;
  std::optional<int64_t> first_ns_;
  int64_t previous_ns_ = 0;
  int64_t now_ns_ = 0;
  uint64_t passthrough_ = 0;
};

}  // namespace blktape
