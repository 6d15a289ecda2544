#pragma once

#include <cstdint>

namespace blktape {

// The clock of every pacing and timeout decision: CLOCK_MONOTONIC, or a fake one in tests.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t NowNs() = 0;
  // Sleeps until `deadline_ns` on the same clock, or a little longer; returns at once if the
  // deadline has passed.
  virtual void SleepUntilNs(int64_t deadline_ns) = 0;

  // The kernel's clock. Thread-safe; it is never destroyed.
  static Clock* Monotonic();
};

// Nanoseconds since the Unix epoch (CLOCK_REALTIME).
int64_t WallNowNs();

// A clock that moves only when AdvanceNs() is called, or to the deadline of a sleep. Not
// thread-safe.
class FakeClock : public Clock {
 public:
  explicit FakeClock(int64_t now_ns = 0) : now_ns_(now_ns) {}
  int64_t NowNs() override { return now_ns_; }
  void SleepUntilNs(int64_t deadline_ns) override {
    if (deadline_ns > now_ns_) now_ns_ = deadline_ns;
  }
  void AdvanceNs(int64_t by_ns) { now_ns_ += by_ns; }

 private:
  int64_t now_ns_;
};

}  // namespace blktape
