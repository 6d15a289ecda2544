#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "format/io_record.h"
#include "replay/plan/address_map.h"
#include "replay/plan/completion_order.h"
#include "replay/plan/dependencies.h"
#include "replay/plan/host_part.h"
#include "replay/plan/kept_blocks.h"
#include "replay/plan/record_stream.h"
#include "replay/plan/schedule.h"
#include "replay/plan/timing_rule.h"
#include "replay/target/target.h"

namespace blktape {

// The recording's I/Os in flight that a replay at maximum speed can keep in order.
inline constexpr uint32_t kMaxGateSlots = 65536;
inline constexpr uint32_t kNoGateSlot = UINT32_MAX;
// The threads of the recording that a closed replay keeps apart.
inline constexpr uint32_t kMaxChains = 4096;

// One step of a replay: an I/O to issue; only the names of I/Os to wait for, where one I/O has too
// many of them (kGates); or a lane to wait for (kAwait: `target` is the lane, `sequence` how far it
// must have come). Plain data that travels through rings.
struct PlannedIo {
  enum class Kind : uint8_t { kIo, kGates, kAwait };
  static constexpr int kMaxRequired = 6;

  Kind kind = Kind::kIo;
  Op op = Op::kRead;
  bool zero_payload = false;  // a write of zeroes that stands for another operation
  // kQueueDepth with think time: the recording's drive was idle before this I/O, so it waits until
  // the replay's is.
  bool wait_idle = false;
  uint8_t required_count = 0;
  // kClosed, of a commit that may be shared (docs/closed_loop.md): its I/Os are there once for each
  // thread that asked for it, and make a chain of their own in each copy; `asked`: not at all if
  // another commit serves that thread. The journal is `chain`.
  Dependencies::CommitPart commit_part = Dependencies::CommitPart::kNone;
  uint8_t commit_copy = 0;
  bool asked = false;
  uint32_t flags = 0;
  uint32_t target = 0;
  uint32_t chain = 0;  // kClosed: I/Os of one chain keep their order
  // kTimed: when it is due, after the start. Else: think time between its gate and its due time.
  int64_t offset_ns = 0;
  int64_t host_ns = 0;        // kClosed: so much later than it is complete the issuer sees it
  int64_t asks_after_ns = 0;  // kClosed: Dependencies::Wait::asks_after_ns
  int64_t goes_on_ns = 0;     // kClosed: Dependencies::Wait::goes_on_ns
  uint64_t sequence = 0;      // place in the plan, from 0
  uint64_t ordinal = 0;       // of the record in its source
  uint64_t offset_bytes = 0;
  uint64_t bytes = 0;
  std::byte* buffer = nullptr;  // filled in by the feed, for reads and writes
  // kMaxOrder, kClosed: the slot by which later I/Os name this one, and the I/Os that must be
  // complete before it, beyond those already named (kClosed: in its chain; a slot may come with
  // Dependencies::kWhileWriting).
  uint32_t gate_slot = kNoGateSlot;
  std::array<uint32_t, kMaxRequired> required{};
};

// What a plan knows of a target; a Target, or made up for tests.
struct PlanTarget {
  uint64_t size_bytes = 0;
  uint32_t block_bytes = 512;
  TargetAbilities abilities;
};

enum class Unsupported { kFail, kSkip, kEmulate };
Result<Unsupported> ParseUnsupported(std::string_view name);

struct PlanOptions {
  TimingRule rule = TimingRule::kTimed;
  double speed = 1.0;
  std::optional<int64_t> idle_cap_ns;
  bool keep_think_time = false;
  bool skip_writes = false;
  bool skip_discards = false;
  bool secure_erase = false;
  Unsupported unsupported = Unsupported::kFail;
  // Recorded device to target; absent: its I/Os are left out by name.
  std::vector<std::optional<uint32_t>> target_of_device;
  std::vector<AddressMap> address_map_of_device;
  std::vector<PlanTarget> targets;
  // kClosed, of each target: so much later than an I/O is complete the issuer sees it; may be
  // empty.
  std::vector<HostPart> host_parts;
  // What discards leave out; null: nothing.
  std::shared_ptr<const KeptBlocks> kept;
};

struct PlanCounts {
  uint64_t planned = 0;
  uint64_t planned_bytes = 0;
  std::array<uint64_t, kOpCount> planned_by_op{};
  std::map<std::string, uint64_t> skipped;   // by reason
  std::map<std::string, uint64_t> emulated;  // "discard as write_zeroes"
  uint64_t remapped = 0;
  uint64_t widened = 0;
  // Of I/Os of commits, and of flushes that follow one, beyond those planned: in case they are not
  // shared, or are.
  uint64_t copies = 0;
  // Nobody can wait for their completion (kMaxOrder, kClosed), or it ends no think time.
  uint64_t ungated = 0;
};

// Turns records into steps, one by one, in bounded memory. Not thread-safe.
class Plan {
 public:
  // `stream` must outlive the plan.
  Plan(RecordStream* stream, PlanOptions options);

  // Fills `io` and returns true; false at the end. kFailedPrecondition: the target cannot do this
  // one.
  Result<bool> Next(PlannedIo* io);

  const PlanCounts& counts() const { return counts_; }
  int64_t idle_cut_ns() const { return schedule_.idle_cut_ns(); }

  // Why a record of this kind is left out whatever the target can do, or null.
  static const char* SkipReason(const PlanOptions& options, const IoRecord& io);

 private:
  struct Mapped {
    Op op;
    bool zero_payload = false;
    bool skip = false;
  };
  Result<Mapped> MapOp(const IoRecord& io, const PlanTarget& target);
  Status Place(const IoRecord& io, PlannedIo* planned);
  void SetTiming(const IoRecord& io, int64_t due_ns, PlannedIo* planned);
  bool KeepsOrder() const;
  bool LacksFua(uint32_t device) const;
  IoRecord WithoutCut(IoRecord io) const;
  bool OfWorker(const IoRecord& io) const;
  void SetWait(const IoRecord& io, PlannedIo* planned, std::optional<PlannedIo>* flush_first);
  void SetGate(const Dependencies::Wait& wait, uint32_t copy, PlannedIo* planned);
  void SetOrder(const IoRecord& io, PlannedIo* planned);
  static void TakeGates(std::vector<uint32_t>* gates, PlannedIo* planned);
  void TakeHeld(PlannedIo* io);

  RecordStream* const stream_;
  const PlanOptions options_;
  Schedule schedule_;
  CompletionOrder order_{kMaxGateSlots};
  Dependencies dependencies_;
  PlanCounts counts_;
  std::vector<uint32_t> gates_;  // to be named before or with the next I/O
  // An I/O behind the kGates steps that precede it, and its copies.
  struct Held {
    PlannedIo io;
    std::vector<uint32_t> gates;
  };
  std::deque<Held> held_;
  // Of each log (a chain): the last flush by who asked for a commit that another thread wrote.
  std::unordered_map<uint32_t, PlannedIo> flush_after_;
  std::optional<int64_t> first_ns_;  // of the recording
  int64_t think_from_ns_ = 0;        // latest completion (or the beginning) before an arrival
  uint64_t sequence_ = 0;
  // What a step begins as: copied from here it takes a fraction of the time that making one takes.
  const PlannedIo blank_;
};

}  // namespace blktape
