#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "replay/engine/engine.h"
#include "replay/engine/engine_options.h"
#include "replay/issue/feed.h"
#include "replay/issue/issue_totals.h"
#include "replay/issue/issued_io.h"
#include "replay/issue/issuer.h"
#include "replay/issue/issuer_options.h"
#include "replay/issue/lane_progress.h"
#include "replay/issue/lane_router.h"
#include "replay/issue/realtime.h"
#include "replay/issue/recorder_thread.h"
#include "replay/issue/turn.h"

namespace blktape {

// The issuing threads of a replay: each an issuer with an engine of its own and its share of the
// depth. Used by one thread, but for what is said to be live.
class IssueLanes {
 public:
  // Opens `count` engines, at most kMaxLanes and at most `options.depth`. With `reserve`, and one
  // lane, a second thread stands by for its own, with one more engine of that depth; if the machine
  // grants that engine.
  static Result<std::unique_ptr<IssueLanes>> Open(std::string_view engine,
                                                  const EngineOptions& options, uint32_t count,
                                                  bool reserve);

  const Engine& engine() const { return *lanes_[0].engine; }
  // Of each thread: how many it has in flight at most.
  std::vector<uint32_t> depths() const;
  uint32_t count() const { return static_cast<uint32_t>(lanes_.size()); }
  // What divides the plan's I/Os among the lanes; null where there is one. Lives as long as this.
  LaneRouter* RouteBy(bool keep_order);

  struct Run {
    // The depth and the lanes are filled in; the buffers for reads are those of all lanes.
    IssuerOptions issuer;
    RealtimeScope::Wish wish;  // the lane is filled in
    int64_t lead_ns = 0;       // from now to the start
    StopFlags stop;            // by_lane is filled in
    ThreadedFeed* feed = nullptr;
    bool returns_buffers = true;  // when an I/O is complete; else the recorder's `done` does it
    RecorderThread* recorder = nullptr;
  };
  // Starts the threads. Everything in `run` must live until Join() has returned.
  void Start(Clock* clock, const Run& run);
  // Whether all have ended within this time.
  bool EndWithin(std::chrono::milliseconds time);
  // Waits until all have ended; the first failure of an engine.
  Status Join();

  // Live: the sums over all lanes (of the lateness and the offset the largest). Reading takes the
  // largest lateness away.
  struct Live {
    uint64_t issued = 0;
    uint64_t completed = 0;
    uint64_t errors = 0;
    uint64_t bytes = 0;
    uint32_t in_flight = 0;
    int64_t lateness_max_ns = 0;
    int64_t offset_ns = 0;
  };
  Live ReadLive();

  // After Join(): over all lanes; the busy share is the largest.
  IssueTotals totals() const;
  // What the machine granted the first thread, and where the others were pinned.
  std::vector<std::string> granted() const;

 private:
  class Sink;
  struct Lane {
    std::unique_ptr<Engine> engine;
    std::unique_ptr<IssueCounters> counters = std::make_unique<IssueCounters>();
    std::unique_ptr<IssueSink> sink;
    std::unique_ptr<Issuer> issuer;
    std::vector<std::string> granted;
    std::future<Status> done;
    RealtimeScope* realtime = nullptr;  // while the thread runs
    std::unique_ptr<Engine> reserve;    // may be null, and so is then:
    std::unique_ptr<Turn> turn;
    std::vector<std::string> reserve_granted;
    std::future<void> reserve_done;
  };
  IssueLanes() = default;

  std::optional<std::latch> ready_;    // the threads whose set-up is done
  std::atomic<int64_t> start_ns_ = 0;  // set by the first of them
  std::array<LaneProgress, kMaxLanes> progress_;
  std::vector<Lane> lanes_;
  std::optional<LaneRouter> router_;
  std::atomic<bool> lane_stopped_ = false;
};

}  // namespace blktape
