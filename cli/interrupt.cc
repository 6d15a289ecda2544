#include "cli/interrupt.h"

#include <csignal>

namespace blktape {
namespace {

std::atomic<bool> stop_asked = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

void AskToStop(int) { stop_asked.store(true); }

}  // namespace

bool HangupIsIgnored() {
  struct sigaction now{};
  sigaction(SIGHUP, nullptr, &now);
  return now.sa_handler == SIG_IGN;
}

const std::atomic<bool>& StopOnSignals() {
  struct sigaction action{};
  action.sa_handler = AskToStop;
  // Only the first signal is caught.
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  // A terminal that goes away, too: queue settings are put back, results finished.
  for (const int one : {SIGINT, SIGTERM, SIGQUIT}) sigaction(one, &action, nullptr);
  if (!HangupIsIgnored()) sigaction(SIGHUP, &action, nullptr);
  // Who reads our output may go away: the write fails, and the work goes on to its orderly end.
  signal(SIGPIPE, SIG_IGN);
  return stop_asked;
}

}  // namespace blktape
