#include "replay/realtime.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace blktape {
namespace {

constexpr int kFifoPriority = 10;
constexpr int kHighNice = -15;

int SetPolicy(int policy, int priority) {
  const sched_param param{.sched_priority = priority};
  // Workers that the kernel starts on this thread's behalf are ordinary threads.
  return sched_setscheduler(0, policy | SCHED_RESET_ON_FORK, &param);
}

std::string Refused(const std::string& what) {
  return "no " + what + " (" + std::strerror(errno) + ")";
}

}  // namespace

RealtimeScope::RealtimeScope(const Wish& wish) {
  // The kernel may be late by the slack to save wakeups; the default is 50 us.
  if (prctl(PR_SET_TIMERSLACK, 1) == 0) granted_.emplace_back("timer slack 1 ns");
  if (!wish.punctual) return;
  Schedule();
  Lock();
  Pin();
}

RealtimeScope::~RealtimeScope() {
  if (fifo_) SetPolicy(SCHED_OTHER, 0);
  if (locked_) munlockall();
}

void RealtimeScope::Schedule() {
  if (SetPolicy(SCHED_FIFO, kFifoPriority) == 0) {
    fifo_ = true;
    granted_.push_back("SCHED_FIFO " + std::to_string(kFifoPriority));
  } else {
    granted_.push_back(Refused("SCHED_FIFO"));
  }
}

void RealtimeScope::Lock() {
  // With a small limit a lock that succeeds now would make later allocations fail.
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  errno = EPERM;
  if ((geteuid() == 0 || limit.rlim_cur == RLIM_INFINITY) &&
      mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0) {
    locked_ = true;
    granted_.emplace_back("memory locked");
  } else {
    granted_.push_back(Refused("locked memory"));
  }
}

void RealtimeScope::Pin() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || CPU_COUNT(&allowed) < 2) return;
  // The last one: the first serves most interrupts.
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &allowed)) --last;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(last, &one);
  if (sched_setaffinity(0, sizeof(one), &one) == 0) {
    granted_.push_back("pinned to CPU " + std::to_string(last));
  } else {
    granted_.push_back(Refused("pinning"));
  }
}

void RealtimeScope::NeverSleeps(bool never) {
  if (!fifo_ || never == fifo_suspended_) return;
  fifo_suspended_ = never;
  if (never) {
    SetPolicy(SCHED_OTHER, 0);
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kHighNice);
  } else {
    SetPolicy(SCHED_FIFO, kFifoPriority);
  }
}

}  // namespace blktape
