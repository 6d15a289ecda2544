#include "replay/issue/reserve_thread.h"

#include <algorithm>

#include "base/units.h"

namespace blktape {
namespace {

// What is overdue by so much and not issued shows that the issuer is held up.
constexpr int64_t kOverdueNs = 30 * kNanosPerMicro;
// It looks for that so long after a due time, no sooner: most I/Os are complete by then, and it
// does not get in the way of those in the kernel who complete them. And so often at the most.
constexpr int64_t kLookAfterNs = 250 * kNanosPerMicro;
constexpr int64_t kLookEveryNs = 500 * kNanosPerMicro;
// The longest sleep, and how long it goes on relieving without work.
constexpr int64_t kLongestSleepNs = 10 * kNanosPerMilli;
// How long it waits where it does not get its turn, or cannot issue what is due.
constexpr int64_t kTurnRetryNs = 20 * kNanosPerMicro;

}  // namespace

ReserveThread::ReserveThread(Issuer* issuer, Engine* engine, Clock* clock)
    : issuer_(issuer),
      turn_(issuer->options().turn),
      clock_(clock),
      engine_(engine, clock, issuer->options(), issuer->totals_in_turn()) {}

void ReserveThread::StandBy() {
  // What an engine does at its first use is not for a turn.
  Status status = engine_.Reap(INT64_MIN);
  while (status.ok() && !issuer_->ended()) status = Relieve();
  if (!status.ok()) issuer_->FailReserve(status);
}

// One round: of waiting, of looking whether the issuer is held up, or of its work.
Status ReserveThread::Relieve() {
  const Engine& engine = engine_.engine();
  int64_t now_ns = engine_.NowNs();
  const int64_t wake_ns =
      relieves_ ? next_ns_ - issuer_->options().spin_in_flight_ns : now_ns + kLongestSleepNs;
  if (engine_.completions().empty() && engine.in_flight() > 0) {
    RETURN_IF_ERROR(engine_.Reap(wake_ns));
  } else if (relieves_ && wake_ns > now_ns) {
    clock_->SleepUntilNs(wake_ns);
  }
  now_ns = engine_.NowNs();
  const bool completed = !engine_.completions().empty();
  if (!completed) engine_.SeeNothing(now_ns);
  relieves_ = relieves_ && turn_->beat() == beat_;
  if (relieves_ || completed) {
    if (!turn_->TryTake()) {
      clock_->SleepUntilNs(now_ns + kTurnRetryNs);
      return OkStatus();
    }
    issuer_->BookCompletions(&engine_);
    if (!relieves_) {
      turn_->GiveBack();
      return OkStatus();
    }
    const Result<size_t> issued = issuer_->IssueInReserve(&engine_, now_ns);
    // A failure is the issuer's to see in its next turn.
    if (!issued.ok()) issuer_->FailReserve(issued.status());
    next_ns_ = issuer_->NextDueNs();
    relieves_ = !issuer_->stopping() && next_ns_ < now_ns + kLongestSleepNs;
    turn_->GiveBack(next_ns_);
    RETURN_IF_ERROR(issued.status());
    // What is due and cannot go waits for a completion: not at the cost of those who bring it.
    if (*issued == 0) {
      next_ns_ = std::max(next_ns_, now_ns + issuer_->options().spin_in_flight_ns + kTurnRetryNs);
    }
    return OkStatus();
  }
  if (engine.in_flight() > 0) return OkStatus();
  const int64_t awaited_ns = turn_->awaited_ns();
  if (awaited_ns != Turn::kNothing && now_ns >= awaited_ns + kOverdueNs) {
    beat_ = turn_->beat();
    next_ns_ = awaited_ns;
    relieves_ = true;
    return OkStatus();
  }
  int64_t until_ns = now_ns + kLongestSleepNs;
  if (awaited_ns != Turn::kNothing) until_ns = std::min(until_ns, awaited_ns + kLookAfterNs);
  clock_->SleepUntilNs(std::max(until_ns, now_ns + kLookEveryNs));
  return OkStatus();
}

}  // namespace blktape
