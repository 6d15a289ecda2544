#include "replay/plan/plan.h"

#include <algorithm>
#include <utility>

#include "base/quantity.h"
#include "base/saturating.h"
#include "format/process_dictionary.h"

namespace blktape {
namespace {

// A write that stands for a discard or a write-zeroes needs a buffer of its size.
constexpr uint64_t kLargestZeroWriteBytes = 8 << 20;

// Linux moves at most 2 GiB with one call, and no drive takes requests of more than some MiB. A
// damaged record that claims more must not become memory.
constexpr uint64_t kLongestRequestBytes = 1 << 30;

bool ChangesData(Op op) { return op != Op::kRead && op != Op::kFlush; }

bool IsZoneOp(Op op) { return op >= Op::kZoneReset; }

std::vector<uint32_t> MachineOfDevice(const proto::Header& header) {
  std::vector<uint32_t> machines;
  for (const proto::Device& device : header.devices()) machines.push_back(device.machine());
  return machines;
}

}  // namespace

Result<Unsupported> ParseUnsupported(std::string_view name) {
  if (name == "fail") return Unsupported::kFail;
  if (name == "skip") return Unsupported::kSkip;
  if (name == "emulate") return Unsupported::kEmulate;
  return Status(StatusCode::kInvalidArgument,
                "unsupported \"" + std::string(name) + "\" is none of fail, skip, emulate");
}

Plan::Plan(RecordStream* stream, PlanOptions options)
    : stream_(stream),
      options_(std::move(options)),
      schedule_(options_.speed, options_.idle_cap_ns),
      dependencies_(kMaxGateSlots, kMaxChains, MachineOfDevice(stream->header())) {}

const char* Plan::SkipReason(const PlanOptions& options, const IoRecord& io) {
  if ((io.flags & kFlagDerived) != 0) return "derived flush, left to the kernel";
  if (io.device >= options.target_of_device.size() || !options.target_of_device[io.device]) {
    return "device not mapped";
  }
  if (options.skip_writes && ChangesData(io.op)) return "skip-writes";
  if (options.skip_discards && (io.op == Op::kDiscard || io.op == Op::kSecureErase)) {
    return "skip-discards";
  }
  if (io.op == Op::kFlush) return nullptr;
  if (!io.arrival_ns()) return "no time recorded";
  if (io.bytes == 0 && !IsZoneOp(io.op)) return "no data";
  if (!io.lba && !IsZoneOp(io.op)) return "no address recorded";
  return nullptr;
}

Result<Plan::Mapped> Plan::MapOp(const IoRecord& io, const PlanTarget& target) {
  const TargetAbilities& able = target.abilities;
  const auto can = [&](Op op) {
    switch (op) {
      case Op::kRead:
      case Op::kWrite:
      case Op::kFlush:
        return true;
      case Op::kDiscard:
        return able.discard;
      case Op::kWriteZeroes:
        return able.write_zeroes;
      case Op::kSecureErase:
        return able.secure_erase && options_.secure_erase;
      default:
        return false;
    }
  };
  if (can(io.op)) return Mapped{.op = io.op};
  if (options_.unsupported == Unsupported::kSkip) return Mapped{.op = io.op, .skip = true};
  if (options_.unsupported == Unsupported::kEmulate && !IsZoneOp(io.op)) {
    if (io.op == Op::kSecureErase && can(Op::kDiscard)) return Mapped{.op = Op::kDiscard};
    if (can(Op::kWriteZeroes)) return Mapped{.op = Op::kWriteZeroes};
    if (io.bytes <= kLargestZeroWriteBytes) return Mapped{.op = Op::kWrite, .zero_payload = true};
  }
  const bool unnamed = io.op == Op::kSecureErase && able.secure_erase;
  return Status(StatusCode::kFailedPrecondition,
                std::string(OpName(io.op)) +
                    (unnamed ? " destroys data beyond recovery and is not done unless named"
                             : " is nothing the target can do") +
                    "\n  try:  --unsupported skip" +
                    (unnamed ? ", or replay --secure-erase"
                             : (options_.unsupported == Unsupported::kEmulate
                                    ? ""
                                    : ", or --unsupported emulate")));
}

Status Plan::Place(const IoRecord& io, PlannedIo* planned) {
  if (io.op == Op::kFlush) return OkStatus();
  // Read field by field: a copy of it whole would wait for their stores.
  const Result<AddressMap::Place> place =
      options_.address_map_of_device[io.device].Map(*io.lba, io.bytes);
  if (!place.ok()) return place.status();
  planned->offset_bytes = place->offset_bytes;
  planned->bytes = place->bytes;
  counts_.remapped += place->moved ? 1 : 0;
  counts_.widened += place->widened ? 1 : 0;
  return OkStatus();
}

// `due_ns`: what the schedule says of this record.
void Plan::SetTiming(const IoRecord& io, int64_t due_ns, PlannedIo* planned) {
  if (options_.rule == TimingRule::kTimed) {
    planned->offset_ns = due_ns;
    return;
  }
  const std::optional<int64_t> arrival_ns = io.arrival_ns();
  if (!options_.keep_think_time || !arrival_ns) return;
  int64_t think_ns = SaturatingSubtract(*arrival_ns, think_from_ns_);
  if (options_.rule == TimingRule::kQueueDepth) {
    if (!order_.idle()) return;
    planned->wait_idle = true;
  }
  if (options_.idle_cap_ns) think_ns = std::min(think_ns, *options_.idle_cap_ns);
  planned->offset_ns = schedule_.ScaleNs(std::max<int64_t>(think_ns, 0));
}

// At a queue depth the recording's completions tell no more than when the drive was idle.
bool Plan::KeepsOrder() const {
  return options_.rule == TimingRule::kMaxOrder ||
         (options_.rule == TimingRule::kQueueDepth && options_.keep_think_time);
}

// Whether the recorded device is known to have no FUA: a flush follows each FUA write then.
bool Plan::LacksFua(uint32_t device) const {
  const proto::Header& header = stream_->header();
  if (device >= static_cast<uint32_t>(header.devices_size())) return false;
  const proto::Device& recorded = header.devices(static_cast<int>(device));
  return recorded.has_fua() && !recorded.fua();
}

// Moved by what the idle cap cut before its arrival. Nothing in flight then completes before that
// cut, so that all differences within the record stay. What woke its thread before a cut was then.
IoRecord Plan::WithoutCut(IoRecord io) const {
  const int64_t cut_ns = schedule_.idle_cut_ns();
  for (std::optional<int64_t>* time_ns : {&io.queue_ns, &io.issue_ns, &io.complete_ns}) {
    if (*time_ns) *time_ns = SaturatingSubtract(**time_ns, cut_ns);
  }
  if (io.since_wake_ns) {
    const auto last_cut_ns = static_cast<uint64_t>(schedule_.last_cut_ns());
    *io.since_wake_ns -= std::min(*io.since_wake_ns, last_cut_ns);
  }
  return io;
}

void Plan::SetGate(const Dependencies::Wait& wait, uint32_t copy, PlannedIo* planned) {
  planned->chain = wait.chain;
  planned->commit_part = wait.part;
  planned->commit_copy = static_cast<uint8_t>(copy);
  planned->asked = wait.asked;
  planned->asks_after_ns = schedule_.ScaleNs(wait.asks_after_ns);
  planned->goes_on_ns = schedule_.ScaleNs(wait.goes_on_ns);
  planned->offset_ns = schedule_.ScaleNs(wait.think_ns);
}

bool Plan::OfWorker(const IoRecord& io) const {
  return io.process && stream_->ProcessName(*io.process).starts_with(kKernelWorker);
}

// kClosed. Copies of the I/O go to those held; `flush_first`: what comes before it.
void Plan::SetWait(const IoRecord& io, PlannedIo* planned, std::optional<PlannedIo>* flush_first) {
  if (io.arrival_ns()) {
    const IoRecord moved = WithoutCut(io);
    if (!options_.host_parts.empty()) {
      planned->host_ns = options_.host_parts[planned->target].Of(planned->op, planned->flags,
                                                                 planned->bytes, /*pause_ns=*/0);
    }
    const Dependencies::Wait wait = dependencies_.WaitOf(moved, &gates_, OfWorker(io));
    for (uint32_t copy = 1; copy < wait.copies; ++copy) {
      Held& held = held_.emplace_back(Held{.io = *planned, .gates = {}});
      SetGate(dependencies_.WaitOfCopy(copy, &held.gates), copy, &held.io);
    }
    counts_.copies += held_.size();
    SetGate(wait, 0, planned);
    const std::optional<uint32_t> slot = dependencies_.Add(moved);
    planned->gate_slot = slot.value_or(kNoGateSlot);
    for (Held& held : held_) {
      held.io.gate_slot = slot ? dependencies_.AddCopy(*slot).value_or(kNoGateSlot) : kNoGateSlot;
    }
    if (wait.flush_first) {
      PlannedIo& flush = flush_first->emplace(flush_after_.at(wait.flush_first->log));
      flush.chain = wait.flush_first->chain;
      flush.gate_slot = wait.flush_first->slot;
      flush.required = {wait.flush_first->gate};
      flush.required_count = 1;
      ++counts_.copies;
    }
    if (wait.flushes_after) flush_after_[*wait.flushes_after] = *planned;
  }
  if (planned->gate_slot == kNoGateSlot) ++counts_.ungated;
}

void Plan::SetOrder(const IoRecord& io, PlannedIo* planned) {
  const bool known = io.complete_ns && io.arrival_ns();
  std::optional<uint32_t> gate_slot;
  if (known) gate_slot = order_.Add(*io.complete_ns);
  if (options_.rule == TimingRule::kQueueDepth) {
    gates_.clear();
    // Its completion ends no think time.
    counts_.ungated += known && !gate_slot;
    return;
  }
  planned->gate_slot = gate_slot.value_or(kNoGateSlot);
  if (!gate_slot) ++counts_.ungated;
}

// Moves names of gates into `planned`.
void Plan::TakeGates(std::vector<uint32_t>* gates, PlannedIo* planned) {
  while (!gates->empty() && planned->required_count < PlannedIo::kMaxRequired) {
    planned->required[planned->required_count++] = gates->back();
    gates->pop_back();
  }
}

void Plan::TakeHeld(PlannedIo* io) {
  Held& first = held_.front();
  if (first.gates.size() > PlannedIo::kMaxRequired) {
    *io = PlannedIo{.kind = PlannedIo::Kind::kGates};
    TakeGates(&first.gates, io);
    return;
  }
  *io = first.io;
  TakeGates(&first.gates, io);
  held_.pop_front();
}

Result<bool> Plan::Next(PlannedIo* io) {
  if (!held_.empty()) {
    TakeHeld(io);
    return true;
  }
  const bool closed = options_.rule == TimingRule::kClosed;
  IoRecord record;
  uint64_t ordinal = 0;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, stream_->Next(&record, &ordinal));
    if (!more) return false;
    const int64_t due_ns = schedule_.Advance(record);
    const std::optional<int64_t> arrival_ns = record.arrival_ns();
    if (closed) dependencies_.Arrive(WithoutCut(record), LacksFua(record.device));
    if (KeepsOrder() && arrival_ns) {
      if (!first_ns_) {
        first_ns_ = arrival_ns;
        think_from_ns_ = *arrival_ns;
      }
      order_.Arrive(*arrival_ns, &gates_);
      think_from_ns_ = std::max(think_from_ns_, order_.last_complete_ns().value_or(*first_ns_));
    }
    if (const char* reason = SkipReason(options_, record)) {
      ++counts_.skipped[reason];
      continue;
    }
    if (options_.kept != nullptr && !options_.kept->LeaveOut(&record)) {
      ++counts_.skipped["discard of what is read again"];
      continue;
    }
    const uint32_t target = *options_.target_of_device[record.device];
    ASSIGN_OR_RETURN(const Mapped mapped, MapOp(record, options_.targets[target]));
    if (mapped.skip) {
      ++counts_.skipped[std::string("unsupported ") + OpName(record.op)];
      continue;
    }
    *io = blank_;
    io->op = mapped.op;
    io->zero_payload = mapped.zero_payload;
    io->flags = record.flags;
    io->target = target;
    io->ordinal = ordinal;
    if (mapped.op != record.op) {
      io->flags |= kFlagEmulated;
      ++counts_.emulated[std::string(OpName(record.op)) + " as " + OpName(mapped.op)];
    }
    const bool moves_data = record.op == Op::kRead || record.op == Op::kWrite;
    if (moves_data && record.bytes > kLongestRequestBytes) {
      return Status(StatusCode::kDataLoss,
                    "record " + std::to_string(ordinal) + " of the trace is a " +
                        std::string(OpName(record.op)) + " of " + FormatBytes(record.bytes) +
                        "; no drive takes requests of more than " +
                        FormatBytes(kLongestRequestBytes) + "\n  try:  blktape info TRACE");
    }
    RETURN_IF_ERROR(Place(record, io));
    std::optional<PlannedIo> flush_first;
    if (closed) {
      SetWait(record, io, &flush_first);
    } else {
      SetTiming(record, due_ns, io);
      if (KeepsOrder()) SetOrder(record, io);
    }
    if (flush_first) flush_first->sequence = sequence_++;
    io->sequence = sequence_++;
    for (Held& copy : held_) copy.io.sequence = sequence_++;
    ++counts_.planned;
    ++counts_.planned_by_op[static_cast<size_t>(io->op)];
    counts_.planned_bytes += io->bytes;
    if (flush_first || gates_.size() > PlannedIo::kMaxRequired) {
      held_.push_front({.io = *io, .gates = std::exchange(gates_, {})});
      if (flush_first) held_.push_front({.io = *flush_first, .gates = {}});
      TakeHeld(io);
    } else {
      TakeGates(&gates_, io);
    }
    return true;
  }
}

}  // namespace blktape
