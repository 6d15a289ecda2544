#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/units.h"

namespace blktape {

// A moment in which a thread that wanted to run did not, as seen by itself: a hypervisor, an
// interrupt or another thread had its CPU.
inline constexpr int64_t kStopFromNs = 100 * kNanosPerMicro;

// What this machine is good for as the host of a drive under test.
struct HostCheck {
  int64_t own_cost_ns = 0;  // of the replayer, an I/O, on the null engine
  int64_t watched_ns = 0;   // CPU time that was looked at, all CPUs together
  uint64_t stops = 0;       // of at least kStopFromNs
  int64_t longest_stop_ns = 0;
  // How long a thread on an idle CPU takes to run after another CPU woke it, the median; absent
  // with one CPU. A completion that the kernel hands to an idle CPU takes as much longer.
  std::optional<int64_t> wake_ns;
  std::optional<int64_t> stolen_ns;  // by the hypervisor meanwhile; absent where nobody tells
  std::vector<std::string> granted;  // as RealtimeScope has it
  std::vector<std::string> advice;   // what would make it better, whole sentences

  // Rule 4 of docs/score.md allows 5 % of the drive's median service time.
  int64_t slowest_fast_drive_ns() const { return own_cost_ns * 20; }
  double stops_per_minute() const;
  // "This host can judge drives slower than 8.2 us an I/O; its CPUs stop 12 times a minute, for at
  // most 2.1 ms, and wake from idle in 4.1 us."
  std::string Sentence() const;
};

// Watches each CPU in turn, as the issuing thread would run, for `seconds_ns` in all. Ends early,
// with what was seen, when `stop` becomes true.
Result<HostCheck> CheckHost(int64_t seconds_ns, const std::atomic<bool>& stop);

// Stops between successive readings of a clock: those that lie kStopFromNs or more apart. Pure.
class StopWatcher {
 public:
  void Read(int64_t now_ns);
  // The thread pauses by its own will: the next reading begins anew.
  void Pause() { last_ns_.reset(); }
  uint64_t stops() const { return stops_; }
  int64_t longest_ns() const { return longest_ns_; }
  int64_t watched_ns() const { return watched_ns_; }

 private:
  std::optional<int64_t> last_ns_;
  uint64_t stops_ = 0;
  int64_t longest_ns_ = 0;
  int64_t watched_ns_ = 0;
};

}  // namespace blktape
