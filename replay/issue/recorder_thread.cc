#include "replay/issue/recorder_thread.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/units.h"
#include "replay/issue/realtime.h"

namespace blktape {
namespace {

constexpr size_t kRing = 16384;
// Between two looks at the rings, which hold 16 ms at a million I/Os a second: each look takes a
// processor away from the drive's own threads for a moment.
constexpr int64_t kShortestPauseNs = kNanosPerMilli;
constexpr int64_t kLongestPauseNs = 4 * kNanosPerMilli;
// For room in a ring that is full.
constexpr int64_t kFullPauseNs = 100 * kNanosPerMicro;

}  // namespace

RecorderThread::RecorderThread(std::function<Status(uint32_t lane, const IssuedIo&)> done,
                               uint32_t lanes, std::atomic<bool>* halt, bool gives_way)
    : done_(std::move(done)), halt_(halt) {
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    rings_.push_back(std::make_unique<SpscRing<IssuedIo>>(kRing));
  }
  thread_ = std::thread([this, gives_way] {
    if (gives_way) GiveWay();
    Work();
  });
}

RecorderThread::~RecorderThread() {
  ending_.store(true, std::memory_order_release);
  if (thread_.joinable()) thread_.join();
}

void RecorderThread::Done(uint32_t lane, const IssuedIo& io) {
  while (!rings_[lane]->TryPush(io)) {
    Clock* clock = Clock::Monotonic();
    clock->SleepUntilNs(clock->NowNs() + kFullPauseNs);
  }
}

Status RecorderThread::Join() {
  ending_.store(true, std::memory_order_release);
  if (thread_.joinable()) thread_.join();
  return status_;
}

// How many there were.
size_t RecorderThread::TakeAll(uint32_t lane) {
  SpscRing<IssuedIo>& ring = *rings_[lane];
  // Not more than one ring's worth, so that no lane waits for another.
  size_t taken = 0;
  for (const IssuedIo* io = ring.Front(); io != nullptr && taken < kRing; io = ring.Front()) {
    const Status status = done_(lane, *io);
    if (!status.ok() && status_.ok()) {
      status_ = status;
      halt_->store(true, std::memory_order_relaxed);
    }
    ring.Pop();
    ++taken;
  }
  return taken;
}

void RecorderThread::Work() {
  Clock* clock = Clock::Monotonic();
  int64_t pause_ns = kShortestPauseNs;
  while (true) {
    const bool ending = ending_.load(std::memory_order_acquire);
    size_t taken = 0;
    for (uint32_t lane = 0; lane < rings_.size(); ++lane) taken += TakeAll(lane);
    if (taken > 0) pause_ns = kShortestPauseNs;
    if (ending && taken == 0) return;
    // Not while it is behind.
    if (ending || taken > kRing / 4) continue;
    clock->SleepUntilNs(clock->NowNs() + pause_ns);
    pause_ns = std::min(pause_ns * 2, kLongestPauseNs);
  }
}

}  // namespace blktape
