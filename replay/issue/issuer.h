#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "replay/engine/engine.h"
#include "replay/issue/frontier.h"
#include "replay/issue/gated_queue.h"
#include "replay/issue/issued_io.h"
#include "replay/issue/lane_progress.h"
#include "replay/issue/overlap_guard.h"
#include "replay/issue/spin_time.h"
#include "replay/issue/turn.h"
#include "replay/outcome/lateness_tally.h"
#include "replay/plan/plan.h"
#include "replay/plan/timing_rule.h"

namespace blktape {

// Where the issuer takes its steps from. Called by one thread at a time.
class PlanFeed {
 public:
  virtual ~PlanFeed() = default;
  enum class State { kReady, kNotYet, kEnd };
  // The next step, kept until Pop(). kNotYet only from a feed that has a thread of its own.
  virtual State Peek(PlannedIo** io) = 0;
  virtual void Pop() = 0;
  // Whether kNotYet is for want of memory that is still in flight.
  virtual bool WantsMemory() const = 0;
};

// Live figures, written by one thread at a time, read by any.
struct IssueCounters {
  std::atomic<uint64_t> issued = 0;
  std::atomic<uint64_t> completed = 0;
  std::atomic<uint64_t> errors = 0;
  std::atomic<uint64_t> bytes = 0;
  std::atomic<uint32_t> in_flight = 0;
  std::atomic<int64_t> lateness_max_ns = 0;  // readers exchange it for 0
  std::atomic<int64_t> offset_ns = 0;        // kTimed: of the last I/O issued
};

// May be set by other threads at any time; but for the first they may be null.
struct StopFlags {
  const std::atomic<bool>* by_user = nullptr;
  const std::atomic<bool>* by_failure = nullptr;  // the result cannot be kept any more
  std::atomic<bool>* by_lane = nullptr;  // of several issuers one has stopped before its end
};

// The stop reason of an issuer that stopped because another one did.
inline constexpr char kStoppedByLane[] = "another issuing thread stopped";

struct IssuerOptions {
  TimingRule rule = TimingRule::kTimed;
  uint32_t depth = 1;  // at most the engine's
  // Before a due time the thread sleeps until so long before it, then polls; until longer before it
  // where its sleeps end late, see SpinTime. 0 with a clock that moves only when slept on.
  int64_t spin_ns = 150'000;
  // The same while requests are out, at most spin_ns: the kernel completes them by threads and soft
  // interrupts of this CPU too, which a real-time thread that polls keeps waiting.
  int64_t spin_in_flight_ns = 50'000;
  // Completions are polled for until so long after a submission; then the thread sleeps until the
  // kernel wakes it, which is part of the latency it sees (Totals::wake_ups). Takes a CPU of its
  // own. 0 with a clock that moves only when slept on.
  int64_t poll_ns = 0;
  uint32_t batch = 1;  // at most so many a submission
  // A buffer of so many bytes for each slot of the depth, for reads that come without one and fit.
  // The slot that became free last is taken first: a few buffers stay in the processor's cache,
  // through which those that are handed out ahead only pass.
  std::byte* read_buffers = nullptr;
  uint64_t read_buffer_bytes = 0;
  // A request that conflicts with an earlier one that is out waits for it, whatever the rule.
  bool order_overlaps = true;
  bool stop_on_error = true;
  // Nothing is issued later than this after the start.
  std::optional<int64_t> duration_ns = {};
  // Where several issuers share a plan: all of them, and which this one is. Not with kMaxOrder or
  // kClosed, nor with think time at a queue depth.
  std::span<LaneProgress> lanes = {};
  uint32_t lane = 0;
  // A second thread calls StandBy(). kTimed only, without `lanes`.
  bool has_reserve = false;
  // Told when the thread stops or resumes sleeping now and then; may be empty.
  std::function<void(bool never_sleeps)> on_saturation = {};
};

// Issues planned I/Os at their time and reaps them promptly: the only thread that touches its
// engine. Parses nothing, allocates nothing, logs nothing while it runs.
//
// A CPU can be taken from its thread at any moment, by a hypervisor or by interrupts, for longer
// than a hundred I/Os take. So a second thread may stand by on another CPU, with an engine of its
// own. The two take turns (see Turn): what is due is looked for, issued and booked in a turn; a
// thread waits and asks its engine for completions outside of one, and while the first does so the
// other can have the turn. It takes it when an I/O is overdue that nobody issues.
class Issuer {
 public:
  // All pointers must outlive the issuer.
  Issuer(Engine* engine, Clock* clock, PlanFeed* feed, IssueSink* sink, IssueCounters* counters,
         const StopFlags& stop, const IssuerOptions& options);

  // Runs the plan from `start_ns` on (which may lie in the future) until it ends, a stop flag is
  // set, or an I/O failed and that stops it; always waits for what is in flight. Fails if the
  // engine does.
  Status Run(int64_t start_ns);

  // Stands by for the thread in Run() until that has ended, with this engine, as deep as the other.
  // If the engine fails, Run() does.
  void StandBy(Engine* engine);

  struct Totals {
    int64_t first_due_ns = 0;
    int64_t last_complete_ns = 0;
    bool stopped_early = false;
    std::string stop_reason;
    // Of the busiest second (or of the whole run, if that is shorter): the share of time the thread
    // neither slept nor polled for the next due time.
    double busy_share_max = 0;
    uint64_t overlaps_ordered = 0;
    // kTimed: I/Os whose submission took over 100 us, stamped at its end.
    uint64_t stalled_submissions = 0;
    // I/Os of which the thread saw over 100 us after its look before that they were complete.
    uint64_t stalled_completions = 0;
    // I/Os that the driver had done when the submission's call came back, of targets where that is
    // the rule (kTimed).
    uint64_t done_within_call = 0;
    // I/Os for whose completion the thread was woken, instead of polling for it.
    uint64_t woken_completions = 0;
    // How late the thread woke when its sleeps and waits ended by the clock.
    LatenessTally wake_ups;
    std::optional<uint64_t> issued_by_reserve;  // absent without a thread in reserve
  };
  const Totals& totals() const { return totals_; }

 private:
  struct Slot {
    IssuedIo io;
    int64_t offset_ns = 0;  // of its PlannedIo, as is
    int64_t submit_begin_ns = 0;
    uint64_t order = 0;  // in which slots were taken
    uint64_t looks = 0;  // of its side before it was submitted
    uint32_t gate_slot = kNoGateSlot;
    uint32_t gate = GatedQueue::kNoGate;  // kClosed
  };
  // Of a target: how many were submitted, and were complete at the first look after that.
  struct Promptness {
    uint64_t submitted = 0;
    uint64_t within_call = 0;
    bool synchronous() const;
  };
  enum class GateState : uint8_t { kOut, kRequired, kDone };
  struct Gate {
    int64_t seen_ns = 0;
    GateState state = GateState::kDone;
  };
  // A thread's engine, and what that gave it and is not booked yet.
  struct Side {
    explicit Side(Engine* engine, uint32_t depth);
    Engine* engine;
    std::vector<EngineCompletion> completions;
    size_t completed = 0;
    int64_t poll_until_ns = INT64_MIN;
    int64_t read_ns = INT64_MIN;    // the clock, when its thread read it last
    uint64_t looks = 0;             // how often it asked the engine for completions
    int64_t looked_ns = INT64_MIN;  // when it did last
    // Of the last look: when the one before it was; the clock and the deadline when it began.
    int64_t looked_before_ns = INT64_MIN;
    int64_t asked_ns = INT64_MIN;
    int64_t deadline_ns = INT64_MIN;
  };
  // How the first thread waits, told in its turn and done outside of it.
  struct Pause {
    bool polls = false;
    int64_t until_ns = 0;
    int64_t due_ns = Turn::kNothing;  // of the step at the front, if only time keeps it
  };
  struct Gated {
    bool open = false;           // else it waits for a completion
    int64_t due_ns = INT64_MIN;  // once open
  };

  Status Reap(Side* side, int64_t deadline_ns);
  bool BookCompletions(Side* side);
  Status Work();
  int64_t NextDueNs();
  Result<bool> IssueInReserve(Side* side, int64_t now_ns);
  void FailReserve(const Status& status);
  void Complete(const EngineCompletion& completion, const Side& side);
  void Date(const EngineCompletion& completion, const Side& side, Slot* slot);
  bool DoneWithinCall(const EngineCompletion& completion, const Side& side, const Slot& slot);
  void Require(const PlannedIo& io);
  Gated GateOf(const PlannedIo& io) const;
  std::byte* BufferOf(uint32_t slot) const;
  bool LaneHasCome(const PlannedIo& await) const;
  // What of the drive's an I/O waited for: until when, and whose end that was.
  struct Freed {
    int64_t ns = INT64_MIN;
    uint64_t by = kNoSequence;
  };
  void Take(const PlannedIo& io, int64_t due_ns, Freed freed, uint32_t gate);
  void TakeGated(int64_t now_ns);
  void FillQueue();
  void TakeClosed(int64_t now_ns);
  void TakeParked();
  void TakeNew(int64_t now_ns);
  void TakeDue(int64_t now_ns);
  void Enqueue(uint32_t slot);
  Status SubmitBatch(Side* side);
  void MarkStalledSubmission(Side* side, size_t first, size_t count, int64_t begin_ns);
  int64_t SpinNs() const;
  Pause PlanPause(int64_t now_ns) const;
  Status Rehearse(const Pause& pause, int64_t now_ns);
  Status Wait(const Pause& pause, int64_t now_ns);
  // With an empty batch: how many the engines have, or have completed and are not booked.
  uint32_t InFlight() const {
    return static_cast<uint32_t>(options_.depth - free_slots_.size() - parked_.size());
  }
  void CountTime(int64_t now_ns);
  void CountSleep(int64_t now_ns);
  void StopEarly(const std::string& reason);

  Side first_;
  Clock* const clock_;
  PlanFeed* const feed_;
  IssueSink* const sink_;
  IssueCounters* const counters_;
  const StopFlags stop_;
  const IssuerOptions options_;
  Totals totals_;

  std::vector<Slot> slots_;
  std::vector<uint32_t> free_slots_;
  std::vector<uint32_t> parked_;  // slots, in plan order: taken, but waiting for a conflicting one
  std::vector<EngineRequest> batch_;
  std::vector<uint32_t> batch_slots_;
  OverlapGuard guard_;
  Frontier frontier_;

  std::optional<GatedQueue> queue_;  // kClosed
  bool slots_blocked_ = false;       // what was due found no slot
  bool more_steps_ = false;          // of the plan, ready to be taken into the queue
  uint64_t taken_ = 0;
  std::vector<Gate> gates_;     // kMaxOrder
  uint64_t required_out_ = 0;   // named I/Os not complete yet
  int64_t gate_open_ns_ = 0;    // when the last of the named ones completed
  bool required_seen_ = false;  // the step at the feed's front was told to Require()
  // kQueueDepth: when each free slot became free, oldest first (a ring of `depth` entries).
  std::vector<int64_t> slot_freed_ns_;
  size_t freed_head_ = 0;
  size_t freed_count_ = 0;

  int64_t start_ns_ = 0;
  bool ended_ = false;
  bool stopping_ = false;
  bool parked_ready_ = false;           // something completed: some of parked_ may go
  bool front_blocked_ = false;          // the step at the front waits for the drive, not for a slot
  int64_t freed_ns_ = INT64_MIN;        // when one at the front had last done so
  uint64_t freed_by_ = kNoSequence;     // thanks to which I/O
  int64_t booked_ns_ = INT64_MIN;       // when the latest completion that is booked was seen
  uint64_t booked_by_ = kNoSequence;    // whose that was
  int64_t held_ns_ = INT64_MIN;         // until when a driver held the thread within a call
  uint64_t held_by_ = kNoSequence;      // for which I/O
  std::vector<Promptness> promptness_;  // by target
  std::optional<int64_t> next_due_ns_;  // of the step at the front, if only time keeps it
  bool starving_ = false;               // the step at the front waits for another thread
  SpinTime spin_;

  Turn turn_;
  std::atomic<bool> run_ended_ = false;
  Status reserve_status_;  // of StandBy, once it failed
  std::atomic<bool> reserve_failed_ = false;
  int64_t turn_ns_ = 0;
  bool turn_worked_ = false;
  int64_t sleep_window_start_ns_ = 0;
  int64_t slept_ns_ = 0;
  bool saturated_ = false;
  int64_t window_start_ns_ = 0;
  int64_t window_idle_ns_ = 0;
  bool window_whole_ = false;  // at least one second was measured
};

}  // namespace blktape
