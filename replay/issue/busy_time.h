#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/units.h"

namespace blktape {

// What an issuing thread does with its time: the share of it, second by second, in which it works;
// and whether it ever sleeps. The thread works in rounds, and waits at their ends. Times in ns on
// one clock. Not thread-safe.
class BusyTime {
 public:
  // Told whenever the thread stops or resumes sleeping now and then; may be empty.
  explicit BusyTime(std::function<void(bool never_sleeps)> on_saturation)
      : on_saturation_(std::move(on_saturation)) {}

  void Start(int64_t now_ns) { round_ns_ = second_ns_ = sleep_window_ns_ = now_ns; }
  // In this round something was issued or found complete.
  void Worked() { worked_ = true; }
  // The thread slept, at the end of a round in which it had not worked.
  void Slept(int64_t ns) { slept_ns_ += ns; }
  // From `from_ns` until now it waited for a completion, which is idle whatever it brings.
  void Awaited(int64_t from_ns, int64_t now_ns) {
    Slept(now_ns - from_ns);
    Polled(from_ns, now_ns);
  }
  // Likewise, but awake.
  void Polled(int64_t from_ns, int64_t now_ns) {
    idle_ns_ += now_ns - from_ns;
    round_ns_ = now_ns;
  }

  // A round ends and the next one begins.
  void NextRound(int64_t now_ns) {
    if (!worked_) idle_ns_ += now_ns - round_ns_;
    round_ns_ = now_ns;
    worked_ = false;
    if (now_ns - second_ns_ >= kNanosPerSecond) {
      share_max_ = whole_ ? std::max(share_max_, Share(now_ns)) : Share(now_ns);
      whole_ = true;
      second_ns_ = now_ns;
      idle_ns_ = 0;
    }
    if (now_ns - sleep_window_ns_ < kSleepWindowNs || !on_saturation_) return;
    const bool saturated = slept_ns_ < (now_ns - sleep_window_ns_) / 20;
    if (saturated != saturated_) on_saturation_(saturated);
    saturated_ = saturated;
    sleep_window_ns_ = now_ns;
    slept_ns_ = 0;
  }

  // The share of the busiest second, or of the whole time if that is shorter.
  double ShareMax(int64_t now_ns) const {
    return whole_ || now_ns <= second_ns_ ? share_max_ : Share(now_ns);
  }

 private:
  // A thread that slept less than a twentieth of this long never sleeps.
  static constexpr int64_t kSleepWindowNs = 100 * kNanosPerMilli;

  double Share(int64_t now_ns) const {
    return 1.0 - static_cast<double>(idle_ns_) / static_cast<double>(now_ns - second_ns_);
  }

  const std::function<void(bool)> on_saturation_;
  int64_t round_ns_ = 0;
  bool worked_ = false;
  int64_t second_ns_ = 0;  // when the second began
  int64_t idle_ns_ = 0;    // in it
  bool whole_ = false;     // at least one second was measured
  double share_max_ = 0;
  int64_t sleep_window_ns_ = 0;  // when it began
  int64_t slept_ns_ = 0;         // in it
  bool saturated_ = false;
};

}  // namespace blktape
