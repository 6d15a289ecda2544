#include "cli/interrupt.h"

#include <csignal>

namespace blktape {
namespace {

std::atomic<bool> stop_asked = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

void AskToStop(int) { stop_asked.store(true); }

}  // namespace

const std::atomic<bool>& StopOnSignals() {
  struct sigaction action{};
  action.sa_handler = AskToStop;
  // Only the first signal is caught.
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return stop_asked;
}

}  // namespace blktape
