#include "bench/host_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
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
  if (stops == 0) return text + "its CPUs did not stop in " + FormatDurationNs(watched_ns) + ".";
  return text + fmt::format("its CPUs stop {:.0f} times a minute, for at most {}.",
                            stops_per_minute(), FormatDurationNs(longest_stop_ns));
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
  check.stolen_ns = stolen.Ns();
  check.advice = Advice(check, cpus);
  return check;
}

}  // namespace blktape
