#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace blktape {

// The CPUs that `allowed` names, those first that served the fewest interrupts of devices (the
// numbered rows of /proc/interrupts), of equals the last. Those not in the table are left out.
std::vector<int> QuietCpus(std::string_view proc_interrupts, const std::vector<int>& allowed);

// The driver of the CPUs' idle states, as /sys/devices/system/cpu/cpuidle/current_driver names it.
// Empty where the kernel has none, as in many guests of a hypervisor: idle CPUs then halt, whatever
// limit is set.
std::string IdleDriver();

// How long an idle CPU may take to work again, in us, by the driver of idle states: 20, but 0 (it
// polls) where that is `haltpoll`, whose 1 us is only the guest's part: a CPU that halts is the
// host's, and whoever wakes it pays for that with 10 to 100 us of its own time.
int32_t IdleLimitUs(std::string_view cpuidle_driver);

// For a thread that works for the issuing ones, at full speed: they and the kernel's workers behind
// the target go first. It still has every moment in which an issuing thread waits for it.
void GiveWay();

// Makes the calling thread punctual for as long as the object lives, as far as the machine allows,
// and keeps the machine's CPUs from idle states that take long to leave: a thread that slept would
// wake late by that, and a completion would seem slower by it. What is refused is no error:
// granted() says what was.
class RealtimeScope {
 public:
  struct Wish {
    // SCHED_FIFO, memory locked, one CPU, and still the I/O priority of an ordinary thread. A
    // thread that only works through a queue at full speed would take the CPU from the threads that
    // feed it, and gains nothing.
    bool punctual = true;
    bool limit_idle_states = true;
    uint32_t lane = 0;  // of several such threads; each gets a CPU of its own, if there are so many
  };
  explicit RealtimeScope(const Wish& wish);
  ~RealtimeScope();
  RealtimeScope(const RealtimeScope&) = delete;
  RealtimeScope& operator=(const RealtimeScope&) = delete;

  // "timer slack 1 ns", "idle states of at most 20 us", "SCHED_FIFO 10", "memory locked", "pinned
  // to CPU 1"; for each refused wish "no SCHED_FIFO (Operation not permitted)", and "no limit of
  // idle states (the kernel has no driver of them)" where the limit has no effect.
  const std::vector<std::string>& granted() const { return granted_; }

  // The kernel stops a SCHED_FIFO thread that never sleeps for 50 ms of each second. While the
  // calling thread polls without a pause it is therefore better off as an ordinary thread of high
  // priority. Cheap when nothing changes.
  void NeverSleeps(bool never);

 private:
  void LimitIdleStates();
  void Lock();
  void Schedule();
  void KeepIoPriority();
  void Pin(uint32_t lane);

  std::vector<std::string> granted_;
  UniqueFd idle_states_;  // the kernel keeps to the limit while it is open
  bool fifo_ = false;
  bool fifo_suspended_ = false;
  bool locked_ = false;
  std::optional<int> io_priority_before_;  // if it was changed
};

}  // namespace blktape
