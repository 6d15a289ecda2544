#include "replay/realtime.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

namespace blktape {
namespace {

constexpr int kFifoPriority = 10;
constexpr int kHighNice = -15;

// <linux/ioprio.h>, whose Linux 6.1 form is no C++.
constexpr int kIoPrioWhoProcess = 1;
constexpr int kIoPrioNone = 0;
constexpr int kIoPrioDefault = (2 << 13) | 4;  // best effort, 4

int SetPolicy(int policy, int priority) {
  const sched_param param{.sched_priority = priority};
  // Workers that the kernel starts on this thread's behalf are ordinary threads.
  return sched_setscheduler(0, policy | SCHED_RESET_ON_FORK, &param);
}

std::string Refused(const std::string& what) {
  return "no " + what + " (" + std::strerror(errno) + ")";
}

}  // namespace

std::optional<int> QuietestCpu(std::string_view proc_interrupts, const std::vector<int>& allowed) {
  std::istringstream table{std::string(proc_interrupts)};
  std::string line;
  std::getline(table, line);
  std::istringstream header(line);
  std::vector<int> cpus;
  for (std::string name; header >> name;) {
    int cpu = -1;
    if (!name.starts_with("CPU")) return std::nullopt;
    std::from_chars(name.data() + 3, name.data() + name.size(), cpu);
    cpus.push_back(cpu);
  }
  std::vector<uint64_t> served(cpus.size());
  while (std::getline(table, line)) {
    std::istringstream row(line);
    int interrupt = 0;
    char colon = 0;
    if (!(row >> interrupt >> colon) || colon != ':') continue;  // NMI, LOC ...
    uint64_t count = 0;
    for (size_t i = 0; i < served.size() && row >> count; ++i) served[i] += count;
  }
  std::optional<int> quietest;
  uint64_t fewest = UINT64_MAX;
  for (size_t i = 0; i < cpus.size(); ++i) {
    if (std::find(allowed.begin(), allowed.end(), cpus[i]) == allowed.end()) continue;
    if (served[i] > fewest) continue;
    fewest = served[i];
    quietest = cpus[i];
  }
  return quietest;
}

RealtimeScope::RealtimeScope(const Wish& wish) {
  // The kernel may be late by the slack to save wakeups; the default is 50 us.
  if (prctl(PR_SET_TIMERSLACK, 1) == 0) granted_.emplace_back("timer slack 1 ns");
  if (!wish.punctual) return;
  KeepIoPriority();
  Schedule();
  Lock();
  Pin();
}

RealtimeScope::~RealtimeScope() {
  if (fifo_) SetPolicy(SCHED_OTHER, 0);
  if (io_priority_kept_) syscall(SYS_ioprio_set, kIoPrioWhoProcess, 0, kIoPrioNone);
  if (locked_) munlockall();
}

// Otherwise the kernel gives the I/O of a SCHED_FIFO thread the real-time class, which schedulers
// and drives treat differently from the recorded I/O.
void RealtimeScope::KeepIoPriority() {
  io_priority_kept_ = syscall(SYS_ioprio_set, kIoPrioWhoProcess, 0, kIoPrioDefault) == 0;
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
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0 || CPU_COUNT(&set) < 2) return;
  std::vector<int> allowed;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) allowed.push_back(cpu);
  }
  // Those that serve the interrupts of disks also run the kernel's work behind them.
  std::ifstream file("/proc/interrupts");
  const std::string interrupts{std::istreambuf_iterator<char>(file), {}};
  const int chosen = QuietestCpu(interrupts, allowed).value_or(allowed.back());
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(chosen, &one);
  if (sched_setaffinity(0, sizeof(one), &one) == 0) {
    granted_.push_back("pinned to CPU " + std::to_string(chosen));
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
