#include "replay/issue/feed.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/units.h"
#include "replay/issue/realtime.h"

namespace blktape {
namespace {

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

// The way of steps to one issuing thread, and of their buffers back.
class ThreadedFeed::Lane : public PlanFeed {
 public:
  struct Returned {
    std::byte* buffer = nullptr;
    uint64_t bytes = 0;
  };
  Lane(const ThreadedFeed* feed, size_t most_buffers)
      : feed_(feed), ring_(kStepsAhead), returned_(std::bit_ceil(most_buffers)) {}

  State Peek(PlannedIo** io) override {
    *io = ring_.Front();
    if (*io != nullptr) return State::kReady;
    if (!feed_->ended_.load(std::memory_order_acquire)) return State::kNotYet;
    *io = ring_.Front();
    return *io != nullptr ? State::kReady : State::kEnd;
  }
  void Pop() override {
    const PlannedIo* io = ring_.Front();
    if (io->buffer != nullptr) {
      popped_bytes_.store(popped_bytes() + io->bytes, std::memory_order_relaxed);
    }
    ring_.Pop();
  }
  bool WantsMemory() const override { return feed_->wants_memory_.load(std::memory_order_relaxed); }

  uint64_t popped_bytes() const { return popped_bytes_.load(std::memory_order_relaxed); }
  SpscRing<PlannedIo>& ring() { return ring_; }
  SpscRing<Returned>& returned() { return returned_; }

 private:
  const ThreadedFeed* const feed_;
  SpscRing<PlannedIo> ring_;
  // Has room for all: the feed's thread may be reading the trace for long, or have ended.
  SpscRing<Returned> returned_;
  std::atomic<uint64_t> popped_bytes_ = 0;
};

ThreadedFeed::ThreadedFeed(Plan* plan, BufferArena* arena, PayloadFill fill, const Options& options)
    : plan_(plan), arena_(arena), fill_(std::move(fill)), options_(options) {
  BLKTAPE_CHECK(options.lanes == 1 || options.router != nullptr);
  for (uint32_t lane = 0; lane < options.lanes; ++lane) {
    lanes_.push_back(std::make_unique<Lane>(this, arena->most_buffers()));
  }
}

ThreadedFeed::~ThreadedFeed() { Stop(); }

void ThreadedFeed::Start() {
  thread_ = std::thread([this] { Work(); });
}

void ThreadedFeed::Stop() {
  quit_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

PlanFeed* ThreadedFeed::lane(uint32_t lane) { return lanes_[lane].get(); }

void ThreadedFeed::Return(uint32_t lane, std::byte* buffer, uint64_t bytes) {
  if (buffer == nullptr) return;
  const bool taken = lanes_[lane]->returned().TryPush({buffer, bytes});
  BLKTAPE_CHECK(taken);
}

void ThreadedFeed::TakeBack() {
  for (const std::unique_ptr<Lane>& lane : lanes_) {
    while (const Lane::Returned* returned = lane->returned().Front()) {
      arena_->Release(returned->buffer, returned->bytes);
      lane->returned().Pop();
    }
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

bool ThreadedFeed::WaitForRoom() {
  const auto ahead = [this] {
    uint64_t bytes = pushed_bytes_;
    for (const std::unique_ptr<Lane>& lane : lanes_) bytes -= lane->popped_bytes();
    return bytes;
  };
  if (ahead() < options_.ahead_bytes) return true;
  int64_t pause_ns = kShortestPauseNs;
  while (ahead() > options_.refill_bytes) {
    if (!Pause(&pause_ns)) return false;
  }
  return true;
}

bool ThreadedFeed::NeedsBuffer(const PlannedIo& io) const {
  if (io.kind != PlannedIo::Kind::kIo) return false;
  return io.op == Op::kWrite || (io.op == Op::kRead && io.bytes > options_.unbuffered_read_bytes);
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

bool ThreadedFeed::Push(const PlannedIo& io, Lane* lane) {
  SpscRing<PlannedIo>& ring = lane->ring();
  if (ring.TryPush(io)) return true;
  // Full: comes back when half of it is used up, not for every step. It begins with half the time
  // that this took before: every look takes a processor away from the drive's own threads.
  int64_t pause_ns = std::clamp(room_took_ns_ / 2, kShortestPauseNs, kLongestPauseNs);
  room_took_ns_ = 0;
  while (ring.size() > ring.capacity() / 2) {
    room_took_ns_ += pause_ns;
    if (!Pause(&pause_ns)) return false;
  }
  return ring.TryPush(io);
}

uint32_t ThreadedFeed::Roomiest() const {
  uint32_t roomiest = 0;
  for (uint32_t lane = 1; lane < lanes_.size(); ++lane) {
    if (lanes_[lane]->ring().size() < lanes_[roomiest]->ring().size()) roomiest = lane;
  }
  return roomiest;
}

bool ThreadedFeed::PushToLane(const PlannedIo& io) {
  if (options_.router == nullptr) return Push(io, lanes_[0].get());
  BLKTAPE_CHECK(io.kind == PlannedIo::Kind::kIo);
  const LaneRouter::Route route = options_.router->Place(io, Roomiest());
  Lane* const lane = lanes_[route.lane].get();
  for (uint32_t other = 0; other < lanes_.size(); ++other) {
    if (route.after[other] == 0) continue;
    const PlannedIo await{
        .kind = PlannedIo::Kind::kAwait, .target = other, .sequence = route.after[other]};
    if (!Push(await, lane)) return false;
  }
  return Push(io, lane);
}

void ThreadedFeed::Work() {
  if (options_.gives_way) GiveWay();
  PlannedIo io;
  while (!quit_.load(std::memory_order_relaxed)) {
    const Result<bool> more = plan_->Next(&io);
    if (!more.ok()) status_ = more.status();
    if (!more.ok() || !*more) break;
    if (NeedsBuffer(io) && !TakeBuffer(&io)) break;
    if (io.kind == PlannedIo::Kind::kIo && io.op == Op::kWrite) fill_(io);
    if (!PushToLane(io)) break;
  }
  ended_.store(true, std::memory_order_release);
  primed_.store(true, std::memory_order_release);
}

}  // namespace blktape
