#include "replay/issue/waiter.h"

#include <algorithm>

#include "base/check.h"
#include "base/units.h"

namespace blktape {
namespace {

constexpr int64_t kForever = INT64_MAX;
// How often a waiting thread looks whether it shall stop.
constexpr int64_t kStopPollNs = 100 * kNanosPerMilli;
// How long it waits for completions before it looks again whether another thread has come on.
constexpr int64_t kFeedPollNs = 20 * kNanosPerMicro;
// Out of a long sleep a thread wakes late: the processor has to come out of a deeper idle state, a
// virtual one out of its host's queue. So the last part of it is a sleep of its own, this short.
constexpr int64_t kShortSleepNs = 250 * kNanosPerMicro;
// The longest that Engine::Rehearse() takes: an I/O that is due sooner would be late for it.
constexpr int64_t kRehearsalNs = 10 * kNanosPerMicro;

}  // namespace

Waiter::Waiter(DatedEngine* engine, Clock* clock, const IssuerOptions& options, BusyTime* busy,
               IssueTotals* totals)
    : engine_(engine),
      clock_(clock),
      options_(options),
      busy_(busy),
      totals_(totals),
      spin_(options.spin_ns) {}

Status Waiter::Wait(int64_t now_ns, std::optional<int64_t> due_ns, bool starving) {
  const bool nothing_out = engine_->engine().in_flight() == 0;
  int64_t until_ns = options_.spin_ns == 0 ? kForever : now_ns + kStopPollNs;
  if (starving) until_ns = now_ns + kFeedPollNs;
  if (due_ns) {
    const int64_t spin_ns =
        nothing_out ? spin_.ns() : std::min(options_.spin_ns, options_.spin_in_flight_ns);
    int64_t wake_ns = *due_ns - spin_ns;
    if (wake_ns - now_ns > kShortSleepNs) wake_ns -= kShortSleepNs;
    until_ns = std::min(until_ns, wake_ns);
  }
  if (!nothing_out) {
    const int64_t poll_until_ns = engine_->poll_until_ns();
    if (now_ns >= until_ns) return Poll(now_ns, *due_ns);
    if (now_ns < poll_until_ns) return Poll(now_ns, std::min(until_ns, poll_until_ns));
    return AwaitCompletion(now_ns, until_ns);
  }
  if (until_ns <= now_ns) return Poll(now_ns, *due_ns);
  BLKTAPE_CHECK(until_ns != kForever);
  clock_->SleepUntilNs(until_ns);
  busy_->Slept(until_ns - now_ns);
  if (due_ns && options_.spin_ns > 0) {
    const int64_t woken_ns = clock_->NowNs();
    totals_->wake_ups.Add(woken_ns - until_ns);
    spin_.Woke(*due_ns - spin_.ns(), woken_ns);
  }
  return OkStatus();
}

Status Waiter::Poll(int64_t now_ns, int64_t until_ns) {
  const bool rehearses = engine_->engine().in_flight() == 0;
  int64_t polled_ns = now_ns;
  do {
    if (rehearses) {
      if (until_ns - polled_ns > kRehearsalNs) RETURN_IF_ERROR(engine_->Rehearse());
    } else if (options_.turn != nullptr) {
      RETURN_IF_ERROR(engine_->Reap(INT64_MIN));
    }
    // Alone, the caller's loop comes round at once and looks at everything.
    if (options_.turn == nullptr) return OkStatus();
    options_.turn->Beat();
    polled_ns = engine_->NowNs();
  } while (engine_->completions().empty() && polled_ns < until_ns);
  busy_->Polled(now_ns, polled_ns);
  return OkStatus();
}

// What wakes the thread is not work: the wait is idle time.
Status Waiter::AwaitCompletion(int64_t now_ns, int64_t until_ns) {
  RETURN_IF_ERROR(engine_->Reap(until_ns));
  const int64_t woken_ns = engine_->NowNs();
  if (engine_->completions().empty()) {
    engine_->SeeNothing(woken_ns);
    totals_->wake_ups.Add(woken_ns - until_ns);
  }
  busy_->Awaited(now_ns, woken_ns);
  return OkStatus();
}

}  // namespace blktape
