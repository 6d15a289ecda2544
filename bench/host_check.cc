#include "bench/host_check.h"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstdlib>
#include <latch>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "base/quantity.h"
#include "host/stolen_time.h"
#include "replay/issue/realtime.h"
#include "replay/run.h"

namespace blktape {
namespace {

// The kernel stops a SCHED_FIFO thread that never sleeps for 50 ms of each second; that is no stop
// of the host's.
constexpr int64_t kSpinNs = 80 * kNanosPerMilli;
constexpr int64_t kRestNs = 20 * kNanosPerMilli;

// An idle CPU is in the deepest state that it may enter by then.
constexpr int64_t kIdleNs = 2 * kNanosPerMilli;
constexpr int kWakes = 100;
// A thread that has not run by then is not waited for: it has no CPU of its own.
constexpr int64_t kLongestWakeNs = 100 * kNanosPerMilli;
// What a replay asks of idle CPUs (replay/issue/realtime.h).
constexpr int64_t kPromptWakeNs = 20 * kNanosPerMicro;

struct CpuWatch {
  StopWatcher stops;
  std::vector<std::string> granted;
};

CpuWatch WatchCpu(uint32_t lane, int64_t for_ns, const std::atomic<bool>& stop) {
  CpuWatch watch;
  std::thread([&] {
    const RealtimeScope punctual({.punctual = true, .limit_idle_states = true, .lane = lane});
    watch.granted = punctual.granted();
    Clock* const clock = Clock::Monotonic();
    const int64_t end_ns = clock->NowNs() + for_ns;
    while (clock->NowNs() < end_ns && !stop.load(std::memory_order_relaxed)) {
      const int64_t rest_at_ns = clock->NowNs() + kSpinNs;
      for (int64_t now_ns = clock->NowNs(); now_ns < rest_at_ns; now_ns = clock->NowNs()) {
        watch.stops.Read(now_ns);
      }
      watch.stops.Read(clock->NowNs());
      watch.stops.Pause();
      clock->SleepUntilNs(clock->NowNs() + kRestNs);
    }
  }).join();
  return watch;
}

// A thread on another CPU, which is idle while nobody wakes it.
class Sleeper {
 public:
  // On the CPUs of the calling thread, which has no priority yet: it would keep a new one waiting.
  Sleeper() : event_(eventfd(0, EFD_CLOEXEC)), thread_([this] { Run(); }) { ready_.wait(); }
  ~Sleeper() {
    done_.store(true);
    eventfd_write(event_.get(), 1);
    thread_.join();
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  // How long it takes to run after this call; absent if it does not.
  std::optional<int64_t> WakeNs() {
    Clock* const clock = Clock::Monotonic();
    ran_ns_.store(0);
    const int64_t asked_ns = clock->NowNs();
    if (eventfd_write(event_.get(), 1) != 0) return std::nullopt;
    while (ran_ns_.load() == 0) {
      if (clock->NowNs() - asked_ns > kLongestWakeNs) return std::nullopt;
    }
    return ran_ns_.load() - asked_ns;
  }

 private:
  void Run() {
    const RealtimeScope punctual({.punctual = true, .limit_idle_states = true, .lane = 1});
    ready_.count_down();
    for (eventfd_t wakes = 0; eventfd_read(event_.get(), &wakes) == 0 && !done_.load();) {
      ran_ns_.store(Clock::Monotonic()->NowNs());
    }
  }

  const UniqueFd event_;
  std::latch ready_{1};
  std::atomic<bool> done_ = false;
  std::atomic<int64_t> ran_ns_ = 0;
  std::thread thread_;
};

// From a thread that polls meanwhile, as the issuing one does.
std::optional<int64_t> WatchWakes(const std::atomic<bool>& stop) {
  std::vector<int64_t> wakes_ns;
  std::thread([&wakes_ns, &stop] {
    Sleeper sleeper;
    const RealtimeScope punctual({.punctual = true, .limit_idle_states = true, .lane = 0});
    Clock* const clock = Clock::Monotonic();
    for (int i = 0; i < kWakes && !stop.load(std::memory_order_relaxed); ++i) {
      const int64_t end_ns = clock->NowNs() + kIdleNs;
      while (clock->NowNs() < end_ns) continue;
      const std::optional<int64_t> wake_ns = sleeper.WakeNs();
      if (!wake_ns) return;
      wakes_ns.push_back(*wake_ns);
    }
  }).join();
  if (wakes_ns.empty()) return std::nullopt;
  const auto middle = wakes_ns.begin() + static_cast<std::ptrdiff_t>(wakes_ns.size() / 2);
  std::nth_element(wakes_ns.begin(), middle, wakes_ns.end());
  return *middle;
}

std::string WakeAdvice(int64_t wake_ns) {
  const std::string what = "Idle CPUs take " + FormatDurationNs(wake_ns) +
                           " to wake, and drives seem slower by that after a pause: ";
  if (!IdleDriver().empty()) {
    return what + "forbid deep idle states in the machine's setup, or let the hypervisor poll.";
  }
  return what +
         "the kernel has no driver of idle states, so that a replay cannot keep CPUs from halting; "
         "boot with idle=poll, or a KVM guest with cpuidle_haltpoll.force=1.";
}

std::vector<std::string> Advice(const HostCheck& check, uint32_t cpus) {
  std::vector<std::string> advice;
  for (const std::string& one : check.granted) {
    if (one.starts_with("no SCHED_FIFO")) {
      advice.push_back("Run it as root: the issuing thread gets real-time priority then.");
    }
  }
  if (cpus < 2) {
    advice.push_back("Give it a second CPU: another thread stands by there while one is held up.");
  }
  if (check.stolen_ns.value_or(0) > check.watched_ns / 100) {
    advice.push_back(
        "The hypervisor takes CPU time: a machine of its own, or pinned virtual CPUs, are better.");
  }
  if (check.wake_ns.value_or(0) > kPromptWakeNs) advice.push_back(WakeAdvice(*check.wake_ns));
  const Result<std::string> governor =
      ReadAttribute("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (governor.ok() && *governor != "performance") {
    advice.push_back("The CPUs change their clock (governor " + *governor +
                     "): the governor performance is steadier.");
  }
  double load[1] = {0};
  if (getloadavg(load, 1) == 1 && load[0] > 0.5 * cpus) {
    advice.push_back(
        fmt::format("Other programs are busy (load {:.1f} on {} CPUs): end them.", load[0], cpus));
  }
  return advice;
}

}  // namespace

void StopWatcher::Read(int64_t now_ns) {
  if (last_ns_) {
    const int64_t gap_ns = now_ns - *last_ns_;
    watched_ns_ += gap_ns;
    if (gap_ns >= kStopFromNs) {
      ++stops_;
      longest_ns_ = std::max(longest_ns_, gap_ns);
    }
  }
  last_ns_ = now_ns;
}

double HostCheck::stops_per_minute() const {
  if (watched_ns <= 0) return 0;
  return static_cast<double>(stops) / static_cast<double>(watched_ns) * 60e9;
}

std::string HostCheck::Sentence() const {
  std::string text = "This host can judge drives slower than " +
                     FormatDurationNs(slowest_fast_drive_ns()) + " an I/O; ";
  text += stops == 0 ? "its CPUs did not stop in " + FormatDurationNs(watched_ns)
                     : fmt::format("its CPUs stop {:.0f} times a minute, for at most {}",
                                   stops_per_minute(), FormatDurationNs(longest_stop_ns));
  if (wake_ns) {
    text += fmt::format("{} and wake from idle in {}", stops == 0 ? "" : ",",
                        FormatDurationNs(*wake_ns));
  }
  return text + ".";
}

Result<HostCheck> CheckHost(int64_t seconds_ns, const std::atomic<bool>& stop) {
  HostCheck check;
  ASSIGN_OR_RETURN(check.own_cost_ns, MeasureOwnCostNs());
  const uint32_t cpus = std::max(1U, std::thread::hardware_concurrency());
  const StolenTime stolen;
  for (uint32_t cpu = 0; cpu < cpus && !stop.load(); ++cpu) {
    const CpuWatch watch = WatchCpu(cpu, seconds_ns / cpus, stop);
    check.stops += watch.stops.stops();
    check.watched_ns += watch.stops.watched_ns();
    check.longest_stop_ns = std::max(check.longest_stop_ns, watch.stops.longest_ns());
    if (cpu == 0) check.granted = watch.granted;
  }
  if (cpus > 1) check.wake_ns = WatchWakes(stop);
  check.stolen_ns = stolen.Ns();
  check.advice = Advice(check, cpus);
  return check;
}

}  // namespace blktape
