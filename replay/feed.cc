#include "replay/feed.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/units.h"

namespace blktape {
namespace {

// Steps prepared ahead: 2048 last 4 ms at 500,000 I/Os a second, and hold 8 MiB at 4 KiB each.
constexpr size_t kRingSteps = 2048;
// Prepared ahead in bytes, so that large I/Os leave the arena to those in flight.
constexpr uint64_t kAheadBytes = 8 << 20;
// At least as many as there can be buffers out.
constexpr size_t kReturnRing = 16384;
constexpr int64_t kShortestPauseNs = 20 * kNanosPerMicro;
constexpr int64_t kLongestPauseNs = kNanosPerMilli;

}  // namespace

PlanFeed::State InlineFeed::Peek(PlannedIo** io) {
  *io = &io_;
  if (held_) return State::kReady;
  if (!status_.ok()) return State::kEnd;
  const Result<bool> more = plan_->Next(&io_);
  if (!more.ok()) status_ = more.status();
  held_ = more.ok() && *more;
  return held_ ? State::kReady : State::kEnd;
}

ThreadedFeed::ThreadedFeed(Plan* plan, BufferArena* arena, PayloadFill fill)
    : plan_(plan),
      arena_(arena),
      fill_(std::move(fill)),
      ring_(kRingSteps),
      returned_(kReturnRing) {}

ThreadedFeed::~ThreadedFeed() { Stop(); }

void ThreadedFeed::Start() {
  thread_ = std::thread([this] { Work(); });
}

void ThreadedFeed::Stop() {
  quit_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

PlanFeed::State ThreadedFeed::Peek(PlannedIo** io) {
  *io = ring_.Front();
  if (*io != nullptr) return State::kReady;
  if (!ended_.load(std::memory_order_acquire)) return State::kNotYet;
  *io = ring_.Front();
  return *io != nullptr ? State::kReady : State::kEnd;
}

void ThreadedFeed::Pop() {
  const PlannedIo* io = ring_.Front();
  if (io->buffer != nullptr) {
    popped_bytes_.store(popped_bytes_.load(std::memory_order_relaxed) + io->bytes,
                        std::memory_order_relaxed);
  }
  ring_.Pop();
}

void ThreadedFeed::Return(const PlannedIo& io) {
  if (io.buffer == nullptr) return;
  const bool taken = returned_.TryPush({io.buffer, io.bytes});
  BLKTAPE_CHECK(taken);
}

void ThreadedFeed::TakeBack() {
  while (const Returned* returned = returned_.Front()) {
    arena_->Release(returned->buffer, returned->bytes);
    returned_.Pop();
  }
}

// Sleeps, longer each time. False: quit.
bool ThreadedFeed::Pause(int64_t* pause_ns) {
  primed_.store(true, std::memory_order_release);
  Clock* clock = Clock::Monotonic();
  clock->SleepUntilNs(clock->NowNs() + *pause_ns);
  *pause_ns = std::min(*pause_ns * 2, kLongestPauseNs);
  return !quit_.load(std::memory_order_relaxed);
}

// Comes back when less than half of what may be prepared ahead is.
bool ThreadedFeed::WaitForRoom() {
  const auto ahead = [this] {
    return pushed_bytes_ - popped_bytes_.load(std::memory_order_relaxed);
  };
  if (ahead() < kAheadBytes) return true;
  int64_t pause_ns = kShortestPauseNs;
  while (ahead() > kAheadBytes / 2) {
    if (!Pause(&pause_ns)) return false;
  }
  return true;
}

bool ThreadedFeed::TakeBuffer(PlannedIo* io) {
  if (!WaitForRoom()) return false;
  int64_t pause_ns = kShortestPauseNs;
  while (true) {
    TakeBack();
    io->buffer = arena_->Acquire(io->bytes);
    if (io->buffer != nullptr) break;
    wants_memory_.store(true, std::memory_order_relaxed);
    if (!Pause(&pause_ns)) return false;
  }
  wants_memory_.store(false, std::memory_order_relaxed);
  pushed_bytes_ += io->bytes;
  return true;
}

bool ThreadedFeed::Push(const PlannedIo& io) {
  if (ring_.TryPush(io)) return true;
  // Full: comes back when half of it is used up, not for every step.
  int64_t pause_ns = kShortestPauseNs;
  while (ring_.size() > ring_.capacity() / 2) {
    if (!Pause(&pause_ns)) return false;
  }
  return ring_.TryPush(io);
}

void ThreadedFeed::Work() {
  PlannedIo io;
  while (!quit_.load(std::memory_order_relaxed)) {
    const Result<bool> more = plan_->Next(&io);
    if (!more.ok()) status_ = more.status();
    if (!more.ok() || !*more) break;
    if (io.kind == PlannedIo::Kind::kIo && (io.op == Op::kRead || io.op == Op::kWrite)) {
      if (!TakeBuffer(&io)) break;
      if (io.op == Op::kWrite) fill_(io);
    }
    if (!Push(io)) break;
  }
  ended_.store(true, std::memory_order_release);
  primed_.store(true, std::memory_order_release);
}

}  // namespace blktape
