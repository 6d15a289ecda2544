#include "cli/record_signals.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "cli/interrupt.h"

namespace blktape {
namespace {

volatile sig_atomic_t has_terminal = 0;
volatile sig_atomic_t stop_signal = 0;
volatile sig_atomic_t stop_typed = 0;
volatile sig_atomic_t hangup = 0;
volatile sig_atomic_t status_request = 0;

bool HasTerminal() {
  const int terminal = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (terminal >= 0) close(terminal);
  return terminal >= 0;
}

constexpr std::array<int, 4> kSignals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

void OnSignal(int signal, siginfo_t* info, void* /*context*/) {
  if (signal == SIGHUP && has_terminal == 0) {
    hangup = 1;
  } else if (signal == SIGUSR1) {
    status_request = 1;
  } else {
    stop_signal = signal;
    stop_typed = signal == SIGHUP || info->si_code == SI_KERNEL;
  }
}

}  // namespace

struct RecordSignals::Old {
  std::array<struct sigaction, kSignals.size()> actions;
};

RecordSignals::RecordSignals() : old_(std::make_unique<Old>()) {
  has_terminal = HasTerminal() ? 1 : 0;
  stop_signal = 0;
  hangup = 0;
  status_request = 0;
  struct sigaction action{};
  action.sa_sigaction = OnSignal;
  action.sa_flags = SA_SIGINFO;  // without SA_RESTART: a waiting poll() ends
  const bool nohup = HangupIsIgnored();
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &action, &old_->actions[i]);
  }
  if (nohup) signal(SIGHUP, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
}

RecordSignals::~RecordSignals() {
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &old_->actions[i], nullptr);
  }
}

int RecordSignals::TakeStop() {
  const int taken = stop_signal;
  stop_signal = 0;
  return taken;
}

bool RecordSignals::TakeHangup() {
  const bool taken = hangup != 0;
  hangup = 0;
  return taken;
}

bool RecordSignals::TakeStatusRequest() {
  const bool taken = status_request != 0;
  status_request = 0;
  return taken;
}

bool RecordSignals::stop_was_typed() const { return stop_typed != 0; }

}  // namespace blktape
