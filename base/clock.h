#pragma once

#include <cstdint>

namespace blktape {

// The monotonic clock (CLOCK_MONOTONIC) every pacing and timeout decision uses, as a seam for
// tests.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t NowNs() = 0;
  // Returns at or after `deadline_ns` on the same clock; at once if it has passed.
  virtual void SleepUntilNs(int64_t deadline_ns) = 0;

  // The kernel's clock. Thread-safe, lives for ever.
  static Clock* Monotonic();
};

// Nanoseconds since the Unix epoch (CLOCK_REALTIME).
int64_t WallNowNs();

// A clock that stands still until told otherwise; sleeping moves it to the deadline. Not
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
