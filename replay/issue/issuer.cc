#include "replay/issue/issuer.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <span>

#include "base/check.h"
#include "format/io_record.h"
#include "replay/issue/turn.h"

namespace blktape {
namespace {

// The only thread that writes it is this one.
template <class T>
void AddTo(std::atomic<T>* counter, T by) {
  counter->store(counter->load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

bool IsSet(const std::atomic<bool>* flag) {
  return flag != nullptr && flag->load(std::memory_order_relaxed);
}

}  // namespace

Issuer::Issuer(Engine* engine, Clock* clock, PlanFeed* feed, IssueSink* sink,
               IssueCounters* counters, const StopFlags& stop, const IssuerOptions& options)
    : feed_(feed),
      sink_(sink),
      counters_(counters),
      stop_(stop),
      options_(options),
      engine_(engine, clock, options_, &totals_),
      slots_(options_, &totals_),
      pacer_(Pacer::Make(options_, feed, &slots_, sink, &totals_)),
      busy_(options.on_saturation),
      waiter_(&engine_, clock, options_, &busy_, &totals_) {
  BLKTAPE_CHECK(options.depth >= 1 && options.depth <= engine->depth() && options.batch >= 1);
  if (options.turn != nullptr) totals_.issued_by_reserve = 0;
}

void Issuer::StopEarly(const std::string& reason) {
  if (totals_.stopped_early) return;
  totals_.stopped_early = true;
  totals_.stop_reason = reason;
  if (stop_.by_lane != nullptr) stop_.by_lane->store(true, std::memory_order_relaxed);
}

void Issuer::LookAtStopFlags() {
  if (IsSet(stop_.by_user)) StopEarly("interrupted");
  if (IsSet(stop_.by_failure)) StopEarly("the result could not be written");
  if (IsSet(stop_.by_lane)) StopEarly(kStoppedByLane);
}

void Issuer::Complete(const EngineCompletion& completion, DatedEngine* engine) {
  engine->Date(completion, &slots_);
  IssuedIo& io = slots_.at(completion.tag).io;
  io.bytes_done = completion.bytes_done;
  io.error = completion.error;
  io.punted = completion.punted;
  slots_.Complete(completion.tag);
  pacer_->Completed(slots_.at(completion.tag).gate, io.seen_ns);
  totals_.last_complete_ns = std::max(totals_.last_complete_ns, io.complete_ns);
  AddTo<uint64_t>(&counters_->completed, 1);
  AddTo(&counters_->bytes, io.bytes_done);
  if (io.error != 0) {
    AddTo<uint64_t>(&counters_->errors, 1);
    if (options_.stop_on_error) {
      StopEarly(std::string(OpName(io.op)) + " of " + std::to_string(io.bytes) + " bytes at byte " +
                std::to_string(io.offset_bytes) +
                " failed: " + std::strerror(static_cast<int>(io.error)));
    }
  }
  sink_->Done(io);
}

bool Issuer::BookCompletions(DatedEngine* engine) {
  const bool any = !engine->completions().empty();
  for (const EngineCompletion& completion : engine->completions()) Complete(completion, engine);
  engine->ForgetCompletions();
  return any;
}

Status Issuer::SubmitBatch(DatedEngine* engine) {
  const std::span<const EngineRequest> batch = slots_.batch();
  for (size_t done = 0; done < batch.size();) {
    if (done > 0) {
      // The engine is full though slots are not: it waits for completions of its own accord.
      BLKTAPE_CHECK(engine->engine().in_flight() > 0);
      RETURN_IF_ERROR(engine->Reap(INT64_MAX));
      BookCompletions(engine);
    }
    ASSIGN_OR_RETURN(const size_t taken, engine->Submit(&slots_, done));
    int64_t lateness_max_ns = 0;
    for (const EngineRequest& request : batch.subspan(done, taken)) {
      const SlotTable::Slot& slot = slots_.at(request.tag);
      lateness_max_ns = std::max(lateness_max_ns, slot.io.issue_ns - slot.io.due_ns);
      counters_->offset_ns.store(slot.offset_ns, std::memory_order_relaxed);
    }
    if (lateness_max_ns > counters_->lateness_max_ns.load(std::memory_order_relaxed)) {
      counters_->lateness_max_ns.store(lateness_max_ns, std::memory_order_relaxed);
    }
    AddTo<uint64_t>(&counters_->issued, taken);
    done += taken;
  }
  slots_.ClearBatch();
  return OkStatus();
}

void Issuer::TakeDue(int64_t now_ns) {
  if (stopping()) return;
  slots_.TakeParked();
  pacer_->TakeDue(now_ns);
}

Result<size_t> Issuer::IssueInReserve(DatedEngine* engine, int64_t now_ns) {
  TakeDue(now_ns);
  const size_t issued = slots_.batch().size();
  *totals_.issued_by_reserve += issued;
  if (issued > 0) RETURN_IF_ERROR(SubmitBatch(engine));
  return issued;
}

int64_t Issuer::NextDueNs() {
  PlannedIo* io = nullptr;
  const bool known = !pacer_->ended() && feed_->Peek(&io) == PlanFeed::State::kReady;
  return known ? totals_.first_due_ns + io->offset_ns : Turn::kNothing;
}

void Issuer::FailReserve(const Status& status) {
  if (reserve_failed_.load(std::memory_order_relaxed)) return;
  reserve_status_ = status;
  reserve_failed_.store(true, std::memory_order_release);
}

// Ends in its turn, which nobody gets again.
Status Issuer::Work() {
  Turn* const turn = options_.turn;
  while (true) {
    if (engine_.completions().empty() && engine_.engine().in_flight() > 0) {
      RETURN_IF_ERROR(engine_.Reap(INT64_MIN));
    }
    if (turn != nullptr) {
      turn->Take();
      if (reserve_failed_.load(std::memory_order_acquire)) return reserve_status_;
    }
    if (BookCompletions(&engine_)) busy_.Worked();
    const int64_t now_ns = engine_.NowNs();
    busy_.NextRound(now_ns);
    LookAtStopFlags();
    TakeDue(now_ns);
    counters_->in_flight.store(slots_.out(), std::memory_order_relaxed);
    if (!slots_.batch().empty()) {
      RETURN_IF_ERROR(SubmitBatch(&engine_));
      busy_.Worked();
      if (turn != nullptr) turn->GiveBack(NextDueNs());
      continue;
    }
    if (slots_.out() == 0 && (stopping() || (pacer_->ended() && !slots_.any_parked()))) {
      return OkStatus();
    }
    if (pacer_->more_steps() && !stopping()) continue;
    std::optional<int64_t> due_ns;
    if (!stopping()) due_ns = pacer_->next_due_ns();
    // What the thread in reserve has out it books in its own time.
    const bool awaits_reserve = engine_.engine().in_flight() == 0 && slots_.out() > 0;
    const bool starving = awaits_reserve || (!stopping() && pacer_->starving());
    if (turn != nullptr) turn->GiveBack(due_ns.value_or(Turn::kNothing));
    RETURN_IF_ERROR(waiter_.Wait(now_ns, due_ns, starving));
  }
}

Status Issuer::Run(int64_t start_ns) {
  totals_.first_due_ns = totals_.last_complete_ns = start_ns;
  pacer_->Start(start_ns);
  busy_.Start(engine_.NowNs());
  const Status worked = Work();
  run_ended_.store(true, std::memory_order_release);
  RETURN_IF_ERROR(worked);
  const int64_t now_ns = engine_.NowNs();
  busy_.NextRound(now_ns);
  totals_.busy_share_max = busy_.ShareMax(now_ns);
  return OkStatus();
}

}  // namespace blktape
