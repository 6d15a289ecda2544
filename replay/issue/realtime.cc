#include "replay/issue/realtime.h"

#include <fcntl.h>
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
#include <mutex>
#include <numeric>
#include <sstream>
#include <utility>

#include "base/file.h"

namespace blktape {
namespace {

constexpr int kFifoPriority = 10;
constexpr int kHighNice = -15;
constexpr int kLowNice = 19;
// Less than the time that is spun before an I/O is due; more than the shallow states of any CPU
// take (a few us), less than the deep ones (100 us to 1 ms).
constexpr int32_t kIdleExitUs = 20;
// The idle states that the guest of a hypervisor has, Documentation/virt/guest-halt-polling.rst.
constexpr std::string_view kGuestIdleDriver = "haltpoll";

// <linux/ioprio.h>, whose Linux 6.1 form is no C++.
constexpr int kIoPrioWhoProcess = 1;
constexpr int kIoPrioClassShift = 13;
constexpr int kIoPrioClassNone = 0;
constexpr int kIoPrioDefault = (2 << kIoPrioClassShift) | 4;  // best effort, 4

int SetPolicy(int policy, int priority) {
  const sched_param param{.sched_priority = priority};
  // Workers that the kernel starts on this thread's behalf are ordinary threads.
  return sched_setscheduler(0, policy | SCHED_RESET_ON_FORK, &param);
}

// Locking memory is the whole process's: the last one unlocks it.
std::mutex lock_mutex;
int locked_scopes = 0;

// Those that serve the interrupts of disks also run the kernel's work behind them. In one order as
// long as the process lives: threads that look at different times still get different CPUs, and the
// runs of a campaign the same one.
const std::vector<int>& CpusByQuiet() {
  static const std::vector<int> cpus = [] {
    std::vector<int> all(CPU_SETSIZE);
    std::iota(all.begin(), all.end(), 0);
    std::ifstream file("/proc/interrupts");
    const std::string interrupts{std::istreambuf_iterator<char>(file), {}};
    std::vector<int> quiet = QuietCpus(interrupts, all);
    if (quiet.empty()) quiet.assign(all.rbegin(), all.rend());
    return quiet;
  }();
  return cpus;
}

std::string Refused(const std::string& what) {
  return "no " + what + " (" + std::strerror(errno) + ")";
}

}  // namespace

std::vector<int> QuietCpus(std::string_view proc_interrupts, const std::vector<int>& allowed) {
  std::istringstream table{std::string(proc_interrupts)};
  std::string line;
  std::getline(table, line);
  std::istringstream header(line);
  std::vector<int> cpus;
  for (std::string name; header >> name;) {
    int cpu = -1;
    if (!name.starts_with("CPU")) return {};
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
  std::vector<size_t> places;
  for (size_t i = cpus.size(); i > 0; --i) {
    const bool is_allowed = std::find(allowed.begin(), allowed.end(), cpus[i - 1]) != allowed.end();
    if (is_allowed) places.push_back(i - 1);
  }
  std::stable_sort(places.begin(), places.end(),
                   [&served](size_t a, size_t b) { return served[a] < served[b]; });
  std::vector<int> quiet;
  for (const size_t place : places) quiet.push_back(cpus[place]);
  return quiet;
}

std::string IdleDriver() {
  const Result<std::string> driver =
      ReadAttribute("/sys/devices/system/cpu/cpuidle/current_driver");
  return driver.ok() && *driver != "none" ? *driver : "";
}

int32_t IdleLimitUs(std::string_view cpuidle_driver) {
  return cpuidle_driver == kGuestIdleDriver ? 0 : kIdleExitUs;
}

// sched(7): a nice value is a thread's own under Linux.
void GiveWay() { setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kLowNice); }

RealtimeScope::RealtimeScope(const Wish& wish) {
  // The kernel may be late by the slack to save wakeups; the default is 50 us.
  if (prctl(PR_SET_TIMERSLACK, 1) == 0) granted_.emplace_back("timer slack 1 ns");
  if (wish.limit_idle_states) LimitIdleStates();
  if (!wish.punctual) return;
  KeepIoPriority();
  Schedule();
  Lock();
  Pin(wish.lane);
}

RealtimeScope::~RealtimeScope() {
  if (fifo_) SetPolicy(SCHED_OTHER, 0);
  if (io_priority_before_) {
    syscall(SYS_ioprio_set, kIoPrioWhoProcess, 0, *io_priority_before_);
  }
  if (!locked_) return;
  const std::scoped_lock lock(lock_mutex);
  if (--locked_scopes == 0) munlockall();
}

// Documentation/power/pm_qos_interface.rst: the limit holds until the file is closed, so also if
// this process is killed.
void RealtimeScope::LimitIdleStates() {
  const std::string driver = IdleDriver();
  const int32_t limit_us = IdleLimitUs(driver);
  UniqueFd file(open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC));
  const bool limited = file && write(file.get(), &limit_us, sizeof(limit_us)) ==
                                   static_cast<ssize_t>(sizeof(limit_us));
  if (!limited) {
    granted_.push_back(Refused("limit of idle states"));
  } else if (driver.empty()) {
    granted_.emplace_back("no limit of idle states (the kernel has no driver of them)");
  } else {
    granted_.push_back("idle states of at most " + std::to_string(limit_us) + " us");
  }
  if (limited) idle_states_ = std::move(file);
}

// Otherwise the kernel gives the I/O of a SCHED_FIFO thread the real-time class, which schedulers
// and drives treat differently from the recorded I/O. A priority that the user gave stays.
void RealtimeScope::KeepIoPriority() {
  const auto before = static_cast<int>(syscall(SYS_ioprio_get, kIoPrioWhoProcess, 0));
  // Linux 5.18 and 5.19 answer with what follows from the thread's nice value where none was given.
  const bool given = before >> kIoPrioClassShift != kIoPrioClassNone && before != kIoPrioDefault;
  if (before < 0 || given) return;
  if (syscall(SYS_ioprio_set, kIoPrioWhoProcess, 0, kIoPrioDefault) == 0) {
    io_priority_before_ = before;
  }
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
  const std::scoped_lock lock(lock_mutex);
  if ((geteuid() == 0 || limit.rlim_cur == RLIM_INFINITY) &&
      mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0) {
    locked_ = true;
    ++locked_scopes;
    granted_.emplace_back("memory locked");
  } else {
    granted_.push_back(Refused("locked memory"));
  }
}

void RealtimeScope::Pin(uint32_t lane) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0 || CPU_COUNT(&set) < 2) return;
  std::vector<int> quiet;
  for (const int cpu : CpusByQuiet()) {
    if (CPU_ISSET(cpu, &set)) quiet.push_back(cpu);
  }
  if (lane >= quiet.size()) return;
  const int chosen = quiet[lane];
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
