#include "base/clock.h"

#include <time.h>

#include <cerrno>

namespace blktape {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;

int64_t ReadNs(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * kNanosPerSecond + now.tv_nsec;
}

class MonotonicClock : public Clock {
 public:
  int64_t NowNs() override { return ReadNs(CLOCK_MONOTONIC); }
  void SleepUntilNs(int64_t deadline_ns) override {
    const timespec deadline{.tv_sec = deadline_ns / kNanosPerSecond,
                            .tv_nsec = deadline_ns % kNanosPerSecond};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr) == EINTR) {
    }
  }
};

}  // namespace

Clock* Clock::Monotonic() {
  static MonotonicClock clock;
  return &clock;
}

int64_t WallNowNs() { return ReadNs(CLOCK_REALTIME); }

}  // namespace blktape
