#include "replay/issue/dated_engine.h"

#include <algorithm>

#include "base/units.h"
#include "replay/plan/timing_rule.h"

namespace blktape {
namespace {

// A submission that takes longer was stopped in its midst; most take 5 to 30 us. And a thread that
// waits without sleeping looks for completions every few.
constexpr int64_t kStalledNs = 100 * kNanosPerMicro;
// So many must have been submitted before a target's driver is taken for one without a queue.
constexpr uint64_t kFewSubmissions = 4;

}  // namespace

DatedEngine::DatedEngine(Engine* engine, Clock* clock, const IssuerOptions& options,
                         IssueTotals* totals)
    : engine_(engine),
      clock_(clock),
      options_(options),
      totals_(totals),
      completions_(std::min<uint32_t>(options.depth, 256)) {}

// The CPU can be taken from the thread within a submission. Whether the drive had the request by
// then nobody can tell: so that no stop of the host becomes the drive's service time, the stamp is
// that of the end, unless the drive was done before. At full speed a long call is mostly work.
Result<size_t> DatedEngine::Submit(SlotTable* slots, size_t from) {
  const std::span<const EngineRequest> requests = slots->batch().subspan(from);
  const int64_t begin_ns = clock_->NowNs();
  for (const EngineRequest& request : requests) {
    SlotTable::Slot& slot = slots->at(request.tag);
    slot.io.issue_ns = slot.submit_begin_ns = begin_ns;
    slot.looks = looks_;
  }
  ASSIGN_OR_RETURN(const size_t taken, engine_->Submit(requests));
  const int64_t end_ns = NowNs();
  if (!IsPunctual(options_.rule)) {
    looked_ns_ = end_ns;
  } else if (end_ns - begin_ns > kStalledNs) {
    for (const EngineRequest& request : requests.first(taken)) {
      slots->at(request.tag).io.issue_ns = end_ns;
    }
    totals_->stalled_submissions += taken;
  }
  poll_until_ns_ = slots->at(requests.back().tag).io.issue_ns + options_.poll_ns;
  return taken;
}

Status DatedEngine::Reap(int64_t deadline_ns) {
  asked_ns_ = read_ns_;
  deadline_ns_ = deadline_ns;
  looked_before_ns_ = looked_ns_;
  ASSIGN_OR_RETURN(completed_, engine_->Reap(completions_, deadline_ns));
  looked_ns_ = asked_ns_;
  if (completed_ > 0) {
    looked_ns_ = std::max(looked_ns_, completions_[completed_ - 1].complete_ns);
  }
  ++looks_;
  return OkStatus();
}

// A driver without a queue (zram, pmem, the page cache) does the work within the call that submits
// it. One stop of the host in a call looks the same; a target shows which it is by most of its
// I/Os.
bool DatedEngine::DoneWithinCall(const EngineCompletion& completion, const SlotTable::Slot& slot) {
  if (!IsPunctual(options_.rule)) return false;
  if (slot.io.target >= promptness_.size()) promptness_.resize(slot.io.target + 1);
  Promptness& target = promptness_[slot.io.target];
  const bool at_first_look = !completion.woken && looks_ == slot.looks + 1;
  ++target.submitted;
  if (at_first_look) ++target.within_call;
  return at_first_look && target.submitted >= kFewSubmissions &&
         target.within_call >= target.submitted / 4 * 3;
}

// A completion is found by a look at the engine; where the look before was longer ago than any
// healthy host takes, or the thread was to wake of itself sooner, it may have been there since
// then.
void DatedEngine::Date(const EngineCompletion& completion, SlotTable* slots) {
  SlotTable::Slot& slot = slots->at(completion.tag);
  IssuedIo& io = slot.io;
  io.complete_ns = io.seen_ns = completion.complete_ns;
  if (io.issue_ns == slot.submit_begin_ns) io.issue_ns += completion.held_back_ns;
  slot.submit_begin_ns += completion.held_back_ns;
  if (DoneWithinCall(completion, slot)) {
    if (io.issue_ns != slot.submit_begin_ns) --totals_->stalled_submissions;
    io.issue_ns = slot.submit_begin_ns;
    ++totals_->done_within_call;
    slots->SeeHeld({.ns = io.seen_ns, .by = io.sequence});
    return;
  }
  if (io.complete_ns < io.issue_ns) io.issue_ns = slot.submit_begin_ns;
  if (completion.woken) ++totals_->woken_completions;
  if (io.seen_ns < asked_ns_) return;  // an engine that knows the moment itself
  const int64_t known_ns =
      std::max(io.issue_ns, completion.woken ? deadline_ns_ : looked_before_ns_);
  if (known_ns >= io.seen_ns - kStalledNs) return;
  io.complete_ns = known_ns;
  ++totals_->stalled_completions;
}

}  // namespace blktape
