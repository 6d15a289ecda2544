#include "capture/assemble/io_assembler.h"

#include <algorithm>

#include "base/units.h"

namespace blktape {
namespace {

constexpr uint32_t kNone = ~uint32_t{0};
// An address in bytes fits 63 bits.
constexpr uint64_t kSectorMax = uint64_t{1} << 54;
constexpr char kNotCompleted[] = "issues whose completion was not seen";
constexpr char kNotIssued[] = "bios queued and not seen issued";
constexpr char kUnknownRanges[] = "discards of several ranges that are not all known";
constexpr uint32_t kFlushFlags = kFlagPreflush | kFlagFua;

// A device without requests has received a bio when the bio is queued.
proto::LossReason OfQueuedBio(proto::LossReason reason) {
  return reason == proto::QUEUE_WITHOUT_ISSUE ? proto::ISSUE_WITHOUT_COMPLETION : reason;
}

uint64_t EndSector(const BlockEvent& event) {
  return event.lba.sectors + event.bytes / kSectorBytes;
}

}  // namespace

IoAssembler::IoAssembler(Output* output, const IoAssemblerOptions& options)
    : output_(output),
      options_(options),
      bios_(&arrivals_),
      arrivals_(options.hold_ns, options.hold_records,
                [this](const FinishedIo& io) { output_->OnRecord(io); }),
      losses_([this](const proto::Loss& loss) { output_->OnAssemblerLoss(loss); }) {}

IoAssembler::Device& IoAssembler::device(uint32_t index) {
  if (index >= devices_.size()) devices_.resize(index + 1);
  return devices_[index];
}

void IoAssembler::Introduce(uint32_t index, const Traits& traits) { device(index).traits = traits; }

uint64_t IoAssembler::Request::total_bytes() const {
  uint64_t total = io.record.bytes + unknown_bytes;
  for (const auto& [lba, bytes] : more_ranges) total += bytes;
  return total;
}

bool IoAssembler::IsOwn(uint32_t pid) const {
  return std::find(options_.own_pids.begin(), options_.own_pids.end(), pid) !=
         options_.own_pids.end();
}

// If write zeroes have no name, appends have none either. The address of an append is the start of
// its zone, also in its completion if the zone was empty.
BlockEvent IoAssembler::NamedOp(uint32_t index, const BlockEvent& event) {
  const uint64_t zone_sectors = device(index).traits.zone_sectors;
  BlockEvent named = event;
  named.unnamed_op = false;
  if (zone_sectors != 0 && event.lba.sectors % zone_sectors == 0) named.op = Op::kZoneAppend;
  return named;
}

void IoAssembler::Add(uint32_t index, const BlockEvent& event) {
  if (event.unnamed_op && !event.passthrough) return Add(index, NamedOp(index, event));
  if (!first_ns_) {
    first_ns_ = event.time_ns;
    now_ns_ = previous_ns_ = event.time_ns;
  }
  // The current time needs two events that agree: a single stray timestamp must not make everything
  // old.
  now_ns_ = std::max(now_ns_, std::min(previous_ns_, event.time_ns));
  previous_ns_ = event.time_ns;
  while (!loss_times_.empty() && loss_times_.back() <= event.time_ns) {
    ++loss_count_;
    loss_times_.pop_back();
  }
  if (event.passthrough) {
    // Passthrough commands are not queued, so this is a zone command without a name.
    if (event.action == BlockAction::kQueue && device(index).traits.zone_sectors != 0) {
      losses_.Count(proto::UNDECODABLE_EVENT, index, event.time_ns,
                    "zone commands that this kernel does not name");
    }
    ++passthrough_;
    return;
  }
  if (event.lba.sectors > kSectorMax) {
    losses_.Count(proto::UNDECODABLE_EVENT, index, event.time_ns, "an address beyond any device");
    return;
  }
  switch (event.action) {
    case BlockAction::kQueue:
      Queue(index, event);
      break;
    case BlockAction::kSplit:
      bios_.Split(index, event.op, event.lba.sectors, event.split_lba.sectors);
      break;
    case BlockAction::kIssue:
      Issue(index, event);
      break;
    case BlockAction::kRequeue:
      Requeue(index, event);
      break;
    case BlockAction::kComplete:
      Complete(index, event);
      break;
    case BlockAction::kGetRequest:
    case BlockAction::kInsert:
    case BlockAction::kBackMerge:
    case BlockAction::kFrontMerge:
    case BlockAction::kRemap:  // the remapped bio is queued at its new place by an event of its own
      break;
  }
  GiveUpOld();
  losses_.Advance(now_ns_);
  arrivals_.Drain(now_ns_);
}

void IoAssembler::Advance(int64_t ns) {
  now_ns_ = std::max(now_ns_, ns);
  GiveUpOld();
  losses_.Advance(now_ns_);
  arrivals_.Drain(now_ns_);
}

void IoAssembler::NoteLoss(std::optional<int64_t> ns) {
  if (!ns || *ns <= now_ns_) {
    ++loss_count_;
    return;
  }
  loss_times_.insert(
      std::lower_bound(loss_times_.begin(), loss_times_.end(), *ns, std::greater<>()), *ns);
}

void IoAssembler::Queue(uint32_t index, const BlockEvent& event) {
  Device& dev = device(index);
  dev.has_queue = true;
  const bool own = IsOwn(event.pid);
  if (event.of_write) return dev.flushes.FlaggedQueued(std::nullopt, event.time_ns, own);
  if (!own) output_->OnQueued(event);
  if (event.op == Op::kFlush) {
    FlushTracker& flushes = dev.flushes;
    if (flushes.asked().size() >= FlushTracker::kWaitingMax) {
      arrivals_.Close(flushes.asked().front().ticket);
      losses_.Count(proto::QUEUE_WITHOUT_ISSUE, index, flushes.asked().front().queue_ns,
                    kNotIssued);
      flushes.asked().pop_front();
    }
    flushes.Ask({.queue_ns = event.time_ns,
                 .ticket = arrivals_.Take(event.time_ns),
                 .flags = event.flags,
                 .pid = event.pid,
                 .loss_count = loss_count_,
                 .own = own,
                 .comm = event.comm});
    return;
  }
  if ((event.flags & kFlushFlags) != 0 && !dev.traits.bio_based) {
    dev.flushes.FlaggedQueued(event.lba.sectors, event.time_ns, own);
  }
  bios_.Insert(index, event.op,
               {.begin = event.lba.sectors,
                .end = EndSector(event),
                .queue_ns = event.time_ns,
                .ticket = arrivals_.Take(event.time_ns),
                .flags = event.flags,
                .pid = event.pid,
                .loss_count = loss_count_,
                .own = own,
                .comm = event.comm});
}

FinishedIo IoAssembler::NewRecord(uint32_t index, const BlockEvent& event) const {
  FinishedIo io;
  io.record.device = index;
  io.record.op = event.op;
  io.record.flags = event.flags;
  if (event.op != Op::kFlush) io.record.lba = event.lba;
  io.record.bytes = event.bytes;
  io.record.issue_ns = event.time_ns;
  io.record.cpu = event.cpu;
  if (event.prio) io.record.prio = *event.prio;
  // The idle task queues nothing: an issue from interrupt context has no useful pid.
  if (event.pid != 0) io.record.pid = event.pid;
  io.comm = event.comm;
  return io;
}

IoAssembler::Request IoAssembler::RequestOf(const PendingBio& bio, const IoKey& key) {
  Request request;
  IoRecord& record = request.io.record;
  record.device = key.device;
  record.op = key.op;
  record.flags = bio.flags;
  record.lba = Lba(bio.begin);
  record.bytes = (bio.end - bio.begin) * kSectorBytes;
  record.queue_ns = bio.queue_ns;
  record.pid = bio.pid;
  record.merged_bios = 0;
  request.io.comm = bio.comm;
  request.own = bio.own;
  request.ticket = bio.ticket;
  return request;
}

// Without the queued bios the ranges are unknown; only their sum is known.
bool IoAssembler::GathersRanges(uint32_t index) {
  const Device& dev = device(index);
  return dev.has_queue && dev.traits.discard_ranges.value_or(2) > 1;
}

bool IoAssembler::Reissue(uint32_t index, const BlockEvent& event) {
  const IoKey key{event.lba.sectors, index, event.op};
  for (uint32_t i = requests_.First(key); i != kNone; i = requests_.Next(i)) {
    Request& request = requests_.at(i);
    const uint64_t rest_bytes = request.total_bytes() - request.done_bytes;
    // If bios are known, a second issue at the same address without a bio is the same request
    // again: its requeue is missing in the trace.
    const bool silent = request.from_bios && rest_bytes == event.bytes &&
                        request.loss_count == loss_count_ && bios_.pool().First(key) == kNone;
    if (!request.requeued && !silent) continue;
    // Requests may grow by a merge while they wait to be issued again.
    if (event.bytes > rest_bytes && event.op == Op::kDiscard && GathersRanges(index)) {
      request.unknown_bytes += event.bytes - rest_bytes;
      losses_.Count(proto::UNDECODABLE_EVENT, index, event.time_ns, kUnknownRanges);
    } else if (event.bytes > rest_bytes) {
      const uint64_t from = event.lba.sectors + rest_bytes / kSectorBytes;
      taken_.clear();
      bios_.Take(index, event.op, from, EndSector(event), &taken_);
      for (const PendingBio& bio : taken_) arrivals_.Close(bio.ticket);
      if (request.io.record.merged_bios) *request.io.record.merged_bios += taken_.size();
      request.io.record.bytes += event.bytes - rest_bytes;
    }
    request.requeued = false;
    if (request.done_bytes == 0) {
      request.io.record.issue_ns = event.time_ns;
      request.io.record.cpu = event.cpu;
    }
    return true;
  }
  return false;
}

void IoAssembler::Issue(uint32_t index, const BlockEvent& event) {
  if (event.op == Op::kFlush) return IssueFlush(index, event);
  Device& dev = device(index);
  const IoKey key{event.lba.sectors, index, event.op};
  if (requests_.First(key) != kNone && Reissue(index, event)) return;
  // A request in flight at this address before the loss of events has been completed unseen.
  for (uint32_t i = requests_.First(key), next; i != kNone; i = next) {
    next = requests_.Next(i);
    if (requests_.at(i).loss_count != loss_count_) GiveUp(i, proto::ISSUE_WITHOUT_COMPLETION);
  }

  Request request;
  request.io = NewRecord(index, event);
  request.loss_count = loss_count_;
  taken_.clear();
  const uint64_t begin = event.lba.sectors;
  // A zone is managed by a bio without data.
  const uint64_t end = std::max(EndSector(event), begin + 1);
  if (event.op == Op::kDiscard && GathersRanges(index)) {
    TakeDiscard(index, event, &request);
  } else {
    bios_.Take(index, event.op, begin, end, &taken_);
  }

  if (taken_.empty()) {
    request.ticket = arrivals_.Take(event.time_ns);
    request.own = IsOwn(event.pid);
  } else {
    const PendingBio* first = &taken_.front();
    const PendingBio* asker = nullptr;  // the bio whose process the record names: other programs
                                        // before the recorder
    request.own = true;
    for (const PendingBio& bio : taken_) {
      if (bio.queue_ns < first->queue_ns) first = &bio;
      request.own = request.own && bio.own;
      request.io.record.flags |= bio.flags & (kFlushFlags | kFlagMapped);
      if (asker == nullptr ||
          std::pair(bio.own, bio.queue_ns) < std::pair(asker->own, asker->queue_ns)) {
        asker = &bio;
      }
    }
    request.from_bios = true;
    request.ticket = first->ticket;
    request.io.record.queue_ns = first->queue_ns;
    request.io.record.pid = asker->pid;
    request.io.record.merged_bios = static_cast<uint32_t>(taken_.size() - 1);
    request.io.comm = asker->comm;
    for (const PendingBio& bio : taken_) {
      if (&bio != first) arrivals_.Close(bio.ticket);
    }
  }
  if ((request.io.record.flags & kFlushFlags) != 0) {
    const uint32_t left_to_kernel = request.io.record.flags & kFlushFlags & ~event.flags;
    // A layer above has flushed before it.
    const uint32_t sequences = request.io.record.flags & (kFlagPreflush | kFlagMapped);
    const bool sequenced = sequences == kFlagPreflush || (left_to_kernel & kFlagFua) != 0;
    for (const PendingBio& bio : taken_) {
      if ((bio.flags & kFlushFlags) != 0) dev.flushes.FlaggedIssued(bio.begin, sequenced);
    }
  }
  requests_.Insert(key, std::move(request));
}

void IoAssembler::TakeDiscard(uint32_t index, const BlockEvent& event, Request* request) {
  const uint64_t begin = event.lba.sectors;
  const uint64_t end = EndSector(event);
  const bool known_to_gather = device(index).traits.discard_ranges.has_value();
  IoRecord& record = request->io.record;
  const auto run = [&](bool one_pid) {
    return bios_.TakeRun(index, event.op, begin, end - begin, one_pid, &taken_);
  };
  // A queue that combines ranges ignores their addresses, and a plug has the bios of one task. If
  // nothing is known about the queue, adjacent bios are one range.
  bool found = known_to_gather && run(/*one_pid=*/true);
  if (!found && bios_.Covers(index, event.op, begin, end)) {
    bios_.Take(index, event.op, begin, end, &taken_);
    return;
  }
  found = found || run(/*one_pid=*/true) || run(/*one_pid=*/false);
  if (!found) {
    // Only the bio that begins here is known; if there is none, not even that.
    const uint64_t first_end = bios_.EndOfFirst(index, event.op, begin, end);
    bios_.Take(index, event.op, begin, first_end, &taken_);
    record.bytes = (first_end - begin) * kSectorBytes;
    request->unknown_bytes = event.bytes - record.bytes;
    losses_.Count(proto::UNDECODABLE_EVENT, index, event.time_ns, kUnknownRanges);
    return;
  }
  // A bio adjacent to its predecessor is in the same range.
  uint64_t at = begin;
  uint64_t* bytes = &record.bytes;
  record.bytes = 0;
  for (const PendingBio& bio : taken_) {
    if (bio.begin != at) bytes = &request->more_ranges.emplace_back(Lba(bio.begin), 0).second;
    *bytes += (bio.end - bio.begin) * kSectorBytes;
    at = bio.end;
  }
}

void IoAssembler::IssueFlush(uint32_t index, const BlockEvent& event) {
  FlushTracker& flushes = device(index).flushes;
  for (size_t i = 0; i < flushes.in_flight().size(); ++i) {
    FlushRequest& flush = flushes.in_flight()[i];
    if (!flush.requeued) continue;
    flush.requeued = false;
    flush.io.record.issue_ns = event.time_ns;
    return;
  }
  // A hardware queue has one flush in flight at a time, so flushes issued before a loss are
  // complete; and flushes asked before the loss may have been served unseen.
  RingQueue<FlushRequest>& in_flight = flushes.in_flight();
  while (!in_flight.empty() &&
         (in_flight.front().loss_count != loss_count_ ||
          event.time_ns - *in_flight.front().io.record.issue_ns > options_.give_up_ns ||
          in_flight.size() >= FlushTracker::kWaitingMax)) {
    losses_.Count(proto::ISSUE_WITHOUT_COMPLETION, index, *in_flight.front().io.record.issue_ns,
                  kNotCompleted);
    LeaveFlush(in_flight.front(), std::nullopt, std::nullopt);
    in_flight.pop_front();
  }
  while (!flushes.asked().empty() && flushes.asked().front().loss_count != loss_count_) {
    losses_.Count(proto::QUEUE_WITHOUT_ISSUE, index, flushes.asked().front().queue_ns, kNotIssued);
    arrivals_.Close(flushes.asked().front().ticket);
    flushes.asked().pop_front();
  }
  FlushTracker::Cause cause = flushes.Issue(event.time_ns);
  FlushRequest flush;
  flush.io = NewRecord(index, event);
  flush.asked = std::move(cause.asked);
  flush.own = cause.own || (flush.asked.empty() && !cause.derived && IsOwn(event.pid));
  if (cause.derived) flush.io.record.flags |= kFlagDerived;
  if (flush.asked.empty()) flush.ticket = arrivals_.Take(event.time_ns);
  flush.loss_count = loss_count_;
  in_flight.push_back(std::move(flush));
}

void IoAssembler::Requeue(uint32_t index, const BlockEvent& event) {
  if (event.op == Op::kFlush) {
    RingQueue<FlushRequest>& in_flight = device(index).flushes.in_flight();
    for (size_t i = in_flight.size(); i-- > 0;) {
      if (in_flight[i].requeued) continue;
      in_flight[i].requeued = true;
      return;
    }
    return;
  }
  // If two requests are in flight at one address, the one issued last. A request whose issue was
  // not seen is new when it is reissued.
  uint32_t last = kNone;
  const IoKey key{event.lba.sectors, index, event.op};
  for (uint32_t i = requests_.First(key); i != kNone; i = requests_.Next(i)) {
    if (!requests_.at(i).requeued) last = i;
  }
  if (last != kNone) requests_.at(last).requeued = true;
}

uint32_t IoAssembler::FindInFlight(uint32_t index, const BlockEvent& event) const {
  uint32_t best = kNone;
  bool best_fits = false;
  for (uint32_t i = requests_.First({event.lba.sectors, index, event.op}); i != kNone;
       i = requests_.Next(i)) {
    const Request& request = requests_.at(i);
    const uint64_t rest_bytes = request.total_bytes() - request.done_bytes;
    if (event.bytes == 0 && rest_bytes > 0) continue;
    const bool fits = rest_bytes == event.bytes;
    // First issued, first completed. But without bios a second issue may be a repetition of the
    // first, and then the last is right. Choosing the last wrongly only swaps two requests;
    // choosing the first wrongly would persist.
    if (best == kNone || (fits && !best_fits) || (fits == best_fits && !request.from_bios)) {
      best = i;
      best_fits = fits;
    }
  }
  return best;
}

void IoAssembler::Complete(uint32_t index, const BlockEvent& event) {
  if (event.op == Op::kFlush) return CompleteFlush(index, event);
  uint32_t found = FindInFlight(index, event);
  if (found == kNone && event.bytes > 0) found = FindAppend(index, event);
  if (found == kNone) {
    if (CompleteBio(index, event)) return;
    if (event.bytes == 0) {
      // The original request of a flush sequence; its data (if any) and flushes were completed
      // before.
      FlushTracker& flushes = device(index).flushes;
      if (flushes.SequenceCompleted(event.lba.sectors)) {
        arrivals_.Close(flushes.asked().front().ticket);
        flushes.asked().pop_front();
      }
      return;
    }
    return OrphanCompletion(index, event);
  }
  Request& request = requests_.at(found);
  IoRecord& record = request.io.record;
  if (!record.error || *record.error == 0) record.error = event.error;
  request.done_bytes += event.bytes;
  if (request.done_bytes < request.total_bytes()) {
    requests_.Rekey(found, {EndSector(event), index, event.op});
    return;
  }
  record.complete_ns = event.time_ns;
  if ((record.flags & kFlushFlags) != 0) {
    device(index).flushes.FlaggedCompleted(record.lba->sectors);
  }
  Leave(request);
  requests_.Erase(found);
}

bool IoAssembler::CompleteBio(uint32_t index, const BlockEvent& event) {
  const bool bio_based = device(index).traits.bio_based;
  // A bio that fails before it becomes a request (it must not wait, or is beyond the end) has its
  // own completion.
  if (!bio_based && event.error == 0) return false;
  PendingBio bio;
  if (!bios_.TakeExact(index, event.op, event.lba.sectors, EndSector(event), &bio)) return false;
  if (!bio_based) {
    arrivals_.Close(bio.ticket);
    return true;
  }
  Request request = RequestOf(bio, {event.lba.sectors, index, event.op});
  IoRecord& record = request.io.record;
  record.flags |= event.flags;
  record.complete_ns = event.time_ns;
  record.error = event.error;
  if (event.prio) record.prio = *event.prio;
  Leave(request);
  return true;
}

void IoAssembler::CompleteFlush(uint32_t index, const BlockEvent& event) {
  Device& dev = device(index);
  RingQueue<FlushRequest>& in_flight = dev.flushes.in_flight();
  if (!in_flight.empty()) {
    const FlushRequest flush = std::move(in_flight.front());
    in_flight.pop_front();
    dev.flushes.FlushCompleted(flush.asked.size());
    return LeaveFlush(flush, event.time_ns, event.error);
  }
  if (dev.traits.bio_based && !dev.flushes.asked().empty()) {
    FlushRequest flush;
    flush.io = NewRecord(index, event);
    flush.io.record.issue_ns.reset();
    flush.io.record.cpu.reset();
    flush.asked.push_back(dev.flushes.asked().front());
    dev.flushes.asked().pop_front();
    return LeaveFlush(flush, event.time_ns, event.error);
  }
  if (event.error != 0 && !dev.flushes.asked().empty()) {  // failed before it became a request
    arrivals_.Close(dev.flushes.asked().front().ticket);
    dev.flushes.asked().pop_front();
    return;
  }
  OrphanCompletion(index, event);
}

uint32_t IoAssembler::FindAppend(uint32_t index, const BlockEvent& event) {
  const uint64_t zone_sectors = device(index).traits.zone_sectors;
  if (zone_sectors == 0) return kNone;
  const uint64_t zone_begin = event.lba.sectors / zone_sectors * zone_sectors;
  // Version 7 of blktrace calls an append a write.
  for (const Op op : {Op::kZoneAppend, event.op}) {
    for (uint32_t i = requests_.First({zone_begin, index, op}); i != kNone; i = requests_.Next(i)) {
      Request& request = requests_.at(i);
      if (request.done_bytes != 0 || request.total_bytes() != event.bytes) continue;
      request.io.record.op = Op::kZoneAppend;
      return i;
    }
  }
  return kNone;
}

void IoAssembler::OrphanCompletion(uint32_t index, const BlockEvent& event) {
  const bool at_start = loss_count_ == 0 && event.time_ns - *first_ns_ <= options_.in_flight_ns;
  losses_.Count(at_start ? proto::IN_FLIGHT_AT_START : proto::ORPHAN_COMPLETION, index,
                event.time_ns, "completions whose issue was not seen");
}

void IoAssembler::Leave(const Request& request) {
  FinishedIo io = request.io;
  // A discard with no known range.
  if (io.record.bytes == 0 && request.unknown_bytes > 0) return arrivals_.Close(request.ticket);
  if (request.own) {
    output_->OnOwnRecord(io);
    arrivals_.Close(request.ticket);
    return;
  }
  for (size_t i = 0; i < request.more_ranges.size(); ++i) arrivals_.Share(request.ticket);
  arrivals_.Close(request.ticket, io);
  for (const auto& [lba, bytes] : request.more_ranges) {
    io.record.lba = lba;
    io.record.bytes = bytes;
    io.record.merged_bios = 0;
    arrivals_.Close(request.ticket, io);
  }
}

void IoAssembler::LeaveFlush(const FlushRequest& flush, std::optional<int64_t> complete_ns,
                             std::optional<uint32_t> error) {
  FinishedIo io = flush.io;
  IoRecord& record = io.record;
  record.complete_ns = complete_ns;
  record.error = error;
  bool own = flush.own;
  if (!flush.asked.empty()) {
    const auto others = std::find_if(flush.asked.begin(), flush.asked.end(),
                                     [](const AskedFlush& asked) { return !asked.own; });
    own = others == flush.asked.end();
    const AskedFlush& asker = own ? flush.asked.front() : *others;
    record.queue_ns = flush.asked.front().queue_ns;
    record.flags |= asker.flags;
    record.pid = asker.pid;
    record.merged_bios = static_cast<uint32_t>(flush.asked.size() - 1);
    io.comm = asker.comm;
    for (size_t i = 1; i < flush.asked.size(); ++i) arrivals_.Close(flush.asked[i].ticket);
  }
  const ArrivalQueue::Ticket ticket = flush.ticket ? *flush.ticket : flush.asked.front().ticket;
  if (own) {
    output_->OnOwnRecord(io);
    arrivals_.Close(ticket);
  } else {
    arrivals_.Close(ticket, io);
  }
}

void IoAssembler::GiveUp(uint32_t index, proto::LossReason reason) {
  const Request& request = requests_.at(index);
  losses_.Count(reason, request.io.record.device, *request.io.record.issue_ns, kNotCompleted);
  Leave(request);
  requests_.Erase(index);
}

void IoAssembler::GiveUpBio(const PendingBio& bio, const IoKey& key, proto::LossReason reason) {
  if (device(key.device).traits.bio_based) {
    losses_.Count(OfQueuedBio(reason), key.device, bio.queue_ns, kNotCompleted);
    Leave(RequestOf(bio, key));
    return;
  }
  if (!bio.asked_again) losses_.Count(reason, key.device, bio.queue_ns, kNotIssued);
  arrivals_.Close(bio.ticket);
}

void IoAssembler::GiveUpAsked(const AskedFlush& asked, uint32_t index, proto::LossReason reason) {
  if (device(index).traits.bio_based) {
    losses_.Count(OfQueuedBio(reason), index, asked.queue_ns, kNotCompleted);
    FlushRequest flush;
    flush.io.record.device = index;
    flush.io.record.op = Op::kFlush;
    flush.asked.push_back(asked);
    LeaveFlush(flush, std::nullopt, std::nullopt);
    return;
  }
  losses_.Count(reason, index, asked.queue_ns, kNotIssued);
  arrivals_.Close(asked.ticket);
}

void IoAssembler::GiveUpOld() {
  const auto limit_ns = [&](uint32_t loss_count) {
    return loss_count == loss_count_ ? options_.give_up_ns : options_.give_up_after_loss_ns;
  };
  for (uint32_t i; (i = requests_.Oldest()) != kNone;) {
    const Request& request = requests_.at(i);
    const int64_t age_ns = now_ns_ - *request.io.record.issue_ns;
    if (age_ns <= limit_ns(request.loss_count) && requests_.size() <= options_.open_max) break;
    GiveUp(i, proto::ISSUE_WITHOUT_COMPLETION);
  }
  for (uint32_t i; (i = bios_.pool().Oldest()) != kNone;) {
    const PendingBio& bio = bios_.pool().at(i);
    const int64_t age_ns = now_ns_ - bio.queue_ns;
    if (age_ns <= limit_ns(bio.loss_count) && bios_.size() <= options_.open_max) break;
    GiveUpBio(bio, bios_.pool().key(i), proto::QUEUE_WITHOUT_ISSUE);
    bios_.pool().Erase(i);
  }
}

void IoAssembler::Finish() {
  const auto reason = [&](int64_t since_ns, uint32_t loss_count, proto::LossReason lost) {
    const bool recent = now_ns_ - since_ns <= options_.in_flight_ns && loss_count == loss_count_;
    return recent ? proto::IN_FLIGHT_AT_END : lost;
  };
  now_ns_ = std::max(now_ns_, previous_ns_);
  for (uint32_t i; (i = requests_.Oldest()) != kNone;) {
    const Request& request = requests_.at(i);
    GiveUp(i, reason(*request.io.record.issue_ns, request.loss_count,
                     proto::ISSUE_WITHOUT_COMPLETION));
  }
  for (uint32_t i; (i = bios_.pool().Oldest()) != kNone;) {
    const PendingBio& bio = bios_.pool().at(i);
    GiveUpBio(bio, bios_.pool().key(i),
              reason(bio.queue_ns, bio.loss_count, proto::QUEUE_WITHOUT_ISSUE));
    bios_.pool().Erase(i);
  }
  for (uint32_t index = 0; index < devices_.size(); ++index) {
    FlushTracker& flushes = devices_[index].flushes;
    for (; !flushes.in_flight().empty(); flushes.in_flight().pop_front()) {
      const FlushRequest& flush = flushes.in_flight().front();
      const int64_t issue_ns = *flush.io.record.issue_ns;
      losses_.Count(reason(issue_ns, loss_count_, proto::ISSUE_WITHOUT_COMPLETION), index, issue_ns,
                    kNotCompleted);
      LeaveFlush(flush, std::nullopt, std::nullopt);
    }
    for (; !flushes.asked().empty(); flushes.asked().pop_front()) {
      const AskedFlush& asked = flushes.asked().front();
      GiveUpAsked(asked, index, reason(asked.queue_ns, loss_count_, proto::QUEUE_WITHOUT_ISSUE));
    }
  }
  arrivals_.DrainAll();
  losses_.Flush();
}

}  // namespace blktape
