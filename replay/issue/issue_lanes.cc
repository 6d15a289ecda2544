#include "replay/issue/issue_lanes.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "replay/engine/engine_factory.h"
#include "replay/issue/reserve_thread.h"

namespace blktape {

// Hands completions on, and buffers back.
class IssueLanes::Sink : public IssueSink {
 public:
  Sink(uint32_t lane, const Run& run)
      : lane_(lane), feed_(run.returns_buffers ? run.feed : nullptr), recorder_(run.recorder) {}
  void Done(const IssuedIo& io) override {
    if (feed_ != nullptr) feed_->Return(lane_, io.buffer, io.bytes);
    recorder_->Done(lane_, io);
  }

 private:
  const uint32_t lane_;
  ThreadedFeed* const feed_;
  RecorderThread* const recorder_;
};

Result<std::unique_ptr<IssueLanes>> IssueLanes::Open(std::string_view engine,
                                                     const EngineOptions& options, uint32_t count,
                                                     bool reserve) {
  BLKTAPE_CHECK(count >= 1 && count <= kMaxLanes && count <= options.depth);
  std::unique_ptr<IssueLanes> lanes(new IssueLanes);
  for (uint32_t lane = 0; lane < count; ++lane) {
    EngineOptions own = options;
    own.depth = options.depth / count + (lane < options.depth % count ? 1 : 0);
    lanes->lanes_.emplace_back();
    ASSIGN_OR_RETURN(lanes->lanes_.back().engine, OpenEngine(engine, own));
    if (!reserve || count > 1) continue;
    Result<std::unique_ptr<Engine>> second = OpenEngine(engine, own);
    if (!second.ok()) continue;
    lanes->lanes_.back().reserve = *std::move(second);
    lanes->lanes_.back().turn = std::make_unique<Turn>();
  }
  return lanes;
}

LaneRouter* IssueLanes::RouteBy(bool keep_order) {
  if (lanes_.size() == 1) return nullptr;
  router_.emplace(std::span<const LaneProgress>(progress_).first(lanes_.size()), keep_order);
  return &*router_;
}

void IssueLanes::Start(Clock* clock, const Run& run) {
  StopFlags stop = run.stop;
  ready_.emplace(static_cast<std::ptrdiff_t>(lanes_.size()));
  IssuerOptions options = run.issuer;
  if (lanes_.size() > 1) {
    stop.by_lane = &lane_stopped_;
    options.lanes = std::span(progress_).first(lanes_.size());
  }
  for (uint32_t number = 0; number < lanes_.size(); ++number) {
    Lane* const lane = &lanes_[number];
    lane->sink = std::make_unique<Sink>(number, run);
    options.lane = number;
    options.depth = lane->engine->depth();
    options.turn = lane->turn.get();
    options.on_saturation = [lane](bool never) { lane->realtime->NeverSleeps(never); };
    lane->issuer = std::make_unique<Issuer>(lane->engine.get(), clock, run.feed->lane(number),
                                            lane->sink.get(), lane->counters.get(), stop, options);
    RealtimeScope::Wish wish = run.wish;
    wish.lane = number;
    lane->done = std::async(std::launch::async,
                            [this, lane, wish, clock, lead_ns = run.lead_ns]() -> Status {
                              RealtimeScope realtime(wish);
                              lane->granted = realtime.granted();
                              lane->realtime = &realtime;
                              // The first I/O is due for all at one moment, which no thread's own
                              // set-up may reach.
                              ready_->arrive_and_wait();
                              int64_t not_yet = 0;
                              start_ns_.compare_exchange_strong(not_yet, clock->NowNs() + lead_ns);
                              const Status status = lane->issuer->Run(start_ns_.load());
                              if (!status.ok())
                                lane_stopped_.store(true, std::memory_order_relaxed);
                              lane->engine->Close();
                              return status;
                            });
    if (lane->reserve != nullptr) {
      wish.lane = 1;
      lane->reserve_done = std::async(std::launch::async, [lane, wish, clock] {
        const RealtimeScope realtime(wish);
        lane->reserve_granted = realtime.granted();
        ReserveThread(lane->issuer.get(), lane->reserve.get(), clock).StandBy();
        lane->reserve->Close();
      });
    }
    options.read_buffers += options.read_buffer_bytes * options.depth;
  }
}

std::vector<uint32_t> IssueLanes::depths() const {
  std::vector<uint32_t> all;
  for (const Lane& lane : lanes_) all.push_back(lane.engine->depth());
  return all;
}

bool IssueLanes::EndWithin(std::chrono::milliseconds time) {
  const auto deadline = std::chrono::steady_clock::now() + time;
  return std::all_of(lanes_.begin(), lanes_.end(), [deadline](const Lane& lane) {
    return lane.done.wait_until(deadline) == std::future_status::ready;
  });
}

Status IssueLanes::Join() {
  Status first;
  for (Lane& lane : lanes_) {
    const Status status = lane.done.get();
    if (lane.reserve_done.valid()) lane.reserve_done.get();
    if (first.ok()) first = status;
  }
  return first;
}

IssueLanes::Live IssueLanes::ReadLive() {
  Live live;
  for (const Lane& lane : lanes_) {
    IssueCounters& counters = *lane.counters;
    live.issued += counters.issued.load(std::memory_order_relaxed);
    live.completed += counters.completed.load(std::memory_order_relaxed);
    live.errors += counters.errors.load(std::memory_order_relaxed);
    live.bytes += counters.bytes.load(std::memory_order_relaxed);
    live.in_flight += counters.in_flight.load(std::memory_order_relaxed);
    live.lateness_max_ns = std::max(
        live.lateness_max_ns, counters.lateness_max_ns.exchange(0, std::memory_order_relaxed));
    live.offset_ns = std::max(live.offset_ns, counters.offset_ns.load(std::memory_order_relaxed));
  }
  return live;
}

IssueTotals IssueLanes::totals() const {
  IssueTotals all = lanes_[0].issuer->totals();
  for (size_t i = 1; i < lanes_.size(); ++i) {
    const IssueTotals& one = lanes_[i].issuer->totals();
    all.last_complete_ns = std::max(all.last_complete_ns, one.last_complete_ns);
    all.busy_share_max = std::max(all.busy_share_max, one.busy_share_max);
    all.overlaps_ordered += one.overlaps_ordered;
    all.stalled_submissions += one.stalled_submissions;
    all.stalled_completions += one.stalled_completions;
    all.done_within_call += one.done_within_call;
    all.woken_completions += one.woken_completions;
    all.wake_ups.Add(one.wake_ups);
    all.stopped_early |= one.stopped_early;
    if (all.stop_reason.empty() || all.stop_reason == kStoppedByLane) {
      all.stop_reason = one.stop_reason;
    }
  }
  return all;
}

std::vector<std::string> IssueLanes::granted() const {
  std::vector<std::string> all = lanes_[0].granted;
  for (const Lane& lane : lanes_) {
    for (const std::string& one : lane.granted) {
      if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
    }
    for (const std::string& one : lane.reserve_granted) {
      if (one.starts_with("pinned")) all.push_back("thread in reserve " + one);
    }
  }
  return all;
}

}  // namespace blktape
