#include "replay/issue/issuer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "replay/engine/engine_factory.h"
#include "replay/issue/feed.h"
#include "replay/issue/reserve_thread.h"
#include "replay/issue/turn.h"
#include "replay/outcome/lateness_split.h"
#include "replay/plan/plan.h"
#include "tests/replay/plan/fake_records.h"

namespace blktape {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kTargetBytes = uint64_t{1} << 40;
constexpr int64_t kStartNs = 1'000;

// Due, submitted, completed, after the start.
struct Times {
  int64_t due;
  int64_t issue;
  int64_t complete;
  bool operator==(const Times&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Times& times) {
  return out << "{" << times.due << ", " << times.issue << ", " << times.complete << "}";
}

// Runs records through plan, issuer and a simulated drive whose service time each test writes down,
// on a clock that jumps: every number below can be worked out by hand.
class IssuerTest : public testing::Test {
 protected:
  // Service time of the I/O at this byte of the target; else 10 ns.
  std::map<uint64_t, int64_t> service_ns_;
  std::map<uint64_t, uint32_t> errors_;
  // So long the thread stands still in the midst of submitting the I/O at this byte.
  std::map<uint64_t, int64_t> stall_ns_;
  TimingRule rule_ = TimingRule::kTimed;
  uint32_t depth_ = 8;
  uint32_t batch_ = 1;
  bool think_ = false;
  bool stop_on_error_ = true;
  bool order_overlaps_ = true;
  std::optional<int64_t> duration_ns_;
  std::byte* read_buffers_ = nullptr;
  uint64_t read_buffer_bytes_ = 0;
  std::atomic<bool> stop_ = false;

  std::vector<Times> Run(std::vector<IoRecord> records) {
    FakeClock clock(0);
    EngineOptions engine_options;
    engine_options.depth = depth_;
    engine_options.clock = &clock;
    engine_options.script = [this, &clock](const EngineRequest& request) {
      issued_bytes_.push_back(request.offset_bytes);
      buffers_.push_back(request.buffer);
      if (stall_ns_.contains(request.offset_bytes)) {
        clock.SleepUntilNs(clock.NowNs() + stall_ns_[request.offset_bytes]);
      }
      const auto found = service_ns_.find(request.offset_bytes);
      return EngineOptions::ScriptedService{
          .service_ns = found == service_ns_.end() ? 10 : found->second,
          .error = errors_.contains(request.offset_bytes) ? errors_[request.offset_bytes] : 0};
    };
    auto engine = OpenEngine("simulated", engine_options);
    EXPECT_TRUE(engine.ok());
    PlanOptions plan_options;
    plan_options.rule = rule_;
    plan_options.keep_think_time = think_;
    plan_options.target_of_device = {0};
    plan_options.address_map_of_device = {AddressMap({}, 0, kTargetBytes, kTargetBytes, 512)};
    plan_options.targets = {PlanTarget{.size_bytes = kTargetBytes, .abilities = {.discard = true}}};
    FakeRecords stream(std::move(records));
    Plan plan(&stream, plan_options);
    InlineFeed feed(&plan);
    Sink sink;
    Issuer issuer(engine->get(), &clock, &feed, &sink, &counters_, StopFlags{&stop_},
                  {.rule = rule_,
                   .depth = depth_,
                   .spin_ns = 0,
                   .batch = batch_,
                   .read_buffers = read_buffers_,
                   .read_buffer_bytes = read_buffer_bytes_,
                   .order_overlaps = order_overlaps_,
                   .stop_on_error = stop_on_error_,
                   .duration_ns = duration_ns_});
    status_ = issuer.Run(kStartNs);
    totals_ = issuer.totals();
    std::map<uint64_t, IssuedIo> in_plan_order;
    for (const IssuedIo& io : sink.done) in_plan_order[io.sequence] = io;
    std::vector<Times> times;
    LatenessSplit split({rule_ == TimingRule::kClosed ? 0 : depth_});
    for (const auto& [sequence, io] : in_plan_order) {
      times.push_back({io.due_ns - kStartNs, io.issue_ns - kStartNs, io.complete_ns - kStartNs});
      const LatenessSplit::Parts parts = split.Add(io);
      EXPECT_EQ(parts.lateness_ns + parts.backlog_ns, io.issue_ns - io.due_ns);
      lateness_ns_.push_back(parts.lateness_ns);
      backlog_ns_.push_back(parts.backlog_ns);
      results_.push_back(io);
    }
    return times;
  }

  struct Sink : IssueSink {
    void Done(const IssuedIo& io) override { done.push_back(io); }
    std::vector<IssuedIo> done;
  };
  Status status_;
  IssueTotals totals_;
  IssueCounters counters_;
  // As the recorder divides what is between due and issue.
  std::vector<int64_t> lateness_ns_;
  std::vector<int64_t> backlog_ns_;
  std::vector<IssuedIo> results_;
  std::vector<uint64_t> issued_bytes_;  // in the order the engine got them
  std::vector<std::byte*> buffers_;     // likewise
};

TEST_F(IssuerTest, TimedIosAreIssuedWhenDueWhateverIsInFlight) {
  service_ns_[0] = 1'000;
  EXPECT_THAT(Run({Read(50, {}, 0), Read(150, {}, 4096), Read(151, {}, 8192)}),
              ElementsAre(Times{0, 0, 1'000}, Times{100, 100, 110}, Times{101, 101, 111}));
  EXPECT_TRUE(status_.ok());
  EXPECT_EQ(totals_.last_complete_ns - totals_.first_due_ns, 1'000);
  EXPECT_THAT(backlog_ns_, ElementsAre(0, 0, 0));
}

TEST_F(IssuerTest, ALateIoDoesNotPushTheNextOne) {
  depth_ = 1;
  service_ns_[0] = 130;
  // The second waits for the slot until 130; the third, due at 200, is on time all the same.
  EXPECT_THAT(Run({Read(0, {}, 0), Read(100, {}, 4096), Read(200, {}, 8192)}),
              ElementsAre(Times{0, 0, 130}, Times{100, 130, 140}, Times{200, 200, 210}));
}

TEST_F(IssuerTest, WhatWaitsForASlotIsBacklogNotLateness) {
  depth_ = 2;
  service_ns_[0] = 500;
  service_ns_[4096] = 500;
  Run({Read(0, {}, 0), Read(10, {}, 4096), Read(20, {}, 8192), Read(900, {}, 12288)});
  EXPECT_THAT(backlog_ns_, ElementsAre(0, 0, 480, 0));
  EXPECT_THAT(lateness_ns_, ElementsAre(0, 0, 0, 0));
}

// The drive got the request before the stop of 5 ms or after it: nobody knows.
TEST_F(IssuerTest, AStopWithinASubmissionIsNoServiceTime) {
  constexpr int64_t kMs = 1'000'000;
  stall_ns_[0] = 5 * kMs;
  service_ns_[0] = 7 * kMs;  // from the begin of the submission, as the scripted drive has it
  stall_ns_[4096] = 5 * kMs;
  service_ns_[4096] = 2 * kMs;
  EXPECT_THAT(
      Run({Read(0, {}, 0), Read(20 * kMs, {}, 4096), Read(40 * kMs, {}, 8192)}),
      ElementsAre(Times{0, 5 * kMs, 7 * kMs},
                  // Done before the submission came back: the drive had it all the time.
                  Times{20 * kMs, 20 * kMs, 22 * kMs}, Times{40 * kMs, 40 * kMs, 40 * kMs + 10}));
  EXPECT_THAT(lateness_ns_, ElementsAre(5 * kMs, 0, 0));
  EXPECT_EQ(totals_.stalled_submissions, 2u);
}

// The issuing thread stops for 50 ms while the drive, which takes 1 ms, is idle; ten I/Os come due
// meanwhile, and go out two at a time.
TEST_F(IssuerTest, WhatCameDueInAStopOfTheHostIsItsLatenessAlsoWhereSlotsAreTakenThen) {
  constexpr int64_t kMs = 1'000'000;
  depth_ = 2;
  stall_ns_[0] = 50 * kMs;
  service_ns_[0] = kMs;
  std::vector<IoRecord> records = {Read(0, {}, 0)};
  for (int64_t i = 1; i <= 10; ++i) {
    const auto offset = static_cast<uint64_t>(i) * 4096;
    service_ns_[offset] = kMs;
    records.push_back(Read(4 * kMs * i, {}, offset));
  }
  Run(std::move(records));
  EXPECT_THAT(backlog_ns_, testing::Each(0));
  EXPECT_GE(*std::ranges::max_element(lateness_ns_), 46 * kMs);
}

// The first is submitted at 0, and the host stops until 50 ms in the midst of that; the drive has
// it by then and is done at 60. The second, due at 2, has to wait for it: without the stop
// until 10.
TEST_F(IssuerTest, AStopReachesThoseThatWaitForAConflictingIoAsTheHosts) {
  constexpr int64_t kMs = 1'000'000;
  stall_ns_[0] = 50 * kMs;
  service_ns_[0] = 60 * kMs;
  EXPECT_THAT(Run({Write(0, {}, 0), Write(2 * kMs, {}, 512)})[1].issue, 60 * kMs);
  EXPECT_THAT(lateness_ns_, ElementsAre(50 * kMs, 50 * kMs));
  EXPECT_THAT(backlog_ns_, ElementsAre(0, 8 * kMs));
}

// Four slots, a drive of 10 ms: nothing of what the I/Os behind wait for is the host's.
TEST_F(IssuerTest, WhatComesDueWhileTheDriveHoldsAllSlotsIsItsBacklog) {
  constexpr int64_t kMs = 1'000'000;
  depth_ = 4;
  std::vector<IoRecord> records;
  for (int64_t i = 0; i < 40; ++i) {
    const auto offset = static_cast<uint64_t>(i) * 4096;
    service_ns_[offset] = 10 * kMs;
    records.push_back(Read(i * kMs / 2, {}, offset));
  }
  Run(std::move(records));
  EXPECT_THAT(lateness_ns_, testing::Each(0));
  // The last is due at 19.5 ms, and of the tenth four that go out together, at 90.
  EXPECT_EQ(backlog_ns_.back(), 90 * kMs + 3 * kMs / 2 - 39 * kMs / 2);
}

TEST_F(IssuerTest, MaxOrderWaitsForWhatHadCompletedAndForNothingElse) {
  rule_ = TimingRule::kMaxOrder;
  // In the recording: B completed before C was queued, A did not; A and C before D.
  service_ns_[0] = 300;    // A
  service_ns_[4096] = 40;  // B
  service_ns_[8192] = 20;  // C
  EXPECT_THAT(
      Run({Read(0, 700, 0), Read(10, 400, 4096), Read(500, 600, 8192), Read(800, 900, 12288)}),
      ElementsAre(Times{0, 0, 300},        // A
                  Times{0, 0, 40},         // B: nothing to wait for
                  Times{40, 40, 60},       // C: once B is done, while A still runs
                  Times{300, 300, 310}));  // D: A was the last
}

TEST_F(IssuerTest, MaxOrderGateOpenedByACompletionThatNobodyWaitedForYetCountsFromThen) {
  rule_ = TimingRule::kMaxOrder;
  depth_ = 1;
  service_ns_[0] = 100;
  service_ns_[4096] = 50;
  // Both start at once by the rule, but there is one slot. C waits for A and B.
  EXPECT_THAT(Run({Read(0, 10, 0), Read(5, 20, 4096), Read(30, 40, 8192)}),
              ElementsAre(Times{0, 0, 100}, Times{0, 100, 150}, Times{150, 150, 160}));
  EXPECT_THAT(backlog_ns_, ElementsAre(0, 100, 0));
}

TEST_F(IssuerTest, MaxOrderKeepsThinkTimeWhenAsked) {
  rule_ = TimingRule::kMaxOrder;
  think_ = true;
  service_ns_[0] = 30;
  // 100 to 170: 70 ns of thinking after the first completion.
  EXPECT_THAT(Run({Read(0, 100, 0), Read(170, 180, 4096)}),
              ElementsAre(Times{0, 0, 30}, Times{100, 100, 110}));
}

IoRecord OfThread(uint32_t thread, IoRecord io) {
  io.pid = thread;
  return io;
}

// Of two threads, one waits for a slow I/O; the other, which comes later in the plan, goes on.
TEST_F(IssuerTest, InAClosedLoopAThreadThatWaitsHoldsBackNoOther) {
  rule_ = TimingRule::kClosed;
  service_ns_[0] = 1'000;
  const std::vector<IoRecord> records = {
      OfThread(1, Read(0, 100, 0)), OfThread(2, Read(0, 50, 4096)),
      OfThread(1, Read(120, 130, 8192)),   // 20 after the first
      OfThread(2, Read(150, 170, 16384)),  // 100 after the second
      OfThread(2, Read(200, 210, 32768))};
  EXPECT_THAT(Run(records),
              ElementsAre(Times{0, 0, 1'000}, Times{0, 0, 10}, Times{1'020, 1'020, 1'030},
                          Times{110, 110, 120}, Times{150, 150, 160}));
  EXPECT_THAT(lateness_ns_, testing::Each(0));
}

// A flush counts from the flush before it, a transfer from the last transfer; none pauses while
// another of its kind is at the drive.
TEST_F(IssuerTest, AnIoTellsHowLongNoneOfItsKindWasAtTheDrive) {
  rule_ = TimingRule::kClosed;
  service_ns_[4096] = 100;
  Run({OfThread(1, Read(0, 10, 0)), OfThread(1, Io(Op::kFlush, 15, 25, 0, 0)),
       OfThread(1, Read(60, 160, 4096)),               // 50 after the first read
       OfThread(2, Read(100, 110, 8192)),              // while that is out
       OfThread(1, Io(Op::kFlush, 200, 210, 0, 0))});  // 175 after the first flush
  std::vector<int64_t> pauses_ns;
  for (const IssuedIo& io : results_) pauses_ns.push_back(io.pause_ns);
  EXPECT_THAT(pauses_ns, ElementsAre(INT64_MAX, INT64_MAX, 50, 0, 175));
}

TEST_F(IssuerTest, InAClosedLoopWhatWaitsForASlotIsBacklog) {
  rule_ = TimingRule::kClosed;
  depth_ = 1;
  service_ns_[0] = 1'000;
  EXPECT_THAT(Run({OfThread(1, Read(0, 10, 0)), OfThread(2, Read(5, 20, 4096))}),
              ElementsAre(Times{0, 0, 1'000}, Times{5, 1'000, 1'010}));
  EXPECT_THAT(lateness_ns_, ElementsAre(0, 0));
  EXPECT_THAT(backlog_ns_, ElementsAre(0, 995));
}

// Four slots at most, eight threads, thousands of I/Os: each one's own order, and none lost.
TEST_F(IssuerTest, InAClosedLoopEachThreadKeepsItsOrder) {
  rule_ = TimingRule::kClosed;
  depth_ = 4;
  std::vector<IoRecord> records;
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t at = static_cast<uint64_t>(i) * 4096;
    records.push_back(OfThread(static_cast<uint32_t>(i * 7919 % 8 + 1),
                               Read(i * 10, i * 10 + 5 + i * 37 % 90, at)));
    service_ns_[at] = 3 + i * 31 % 200;
  }
  EXPECT_EQ(Run(records).size(), records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    for (size_t j = i > 100 ? i - 100 : 0; j < i; ++j) {
      if (records[j].pid != records[i].pid) continue;
      ASSERT_LE(results_[j].due_ns, results_[i].due_ns) << j << " before " << i;
      if (*records[j].complete_ns > *records[i].queue_ns) continue;
      ASSERT_LE(results_[j].complete_ns, results_[i].due_ns) << j << " before " << i;
    }
  }
}

TEST_F(IssuerTest, AtAQueueDepthTheNextIsDueWhenASlotBecameFree) {
  rule_ = TimingRule::kQueueDepth;
  depth_ = 2;
  service_ns_[0] = 100;
  service_ns_[4096] = 30;
  service_ns_[8192] = 50;
  EXPECT_THAT(Run({Read(0, {}, 0), Read(0, {}, 4096), Read(0, {}, 8192), Read(0, {}, 12288)}),
              ElementsAre(Times{0, 0, 100}, Times{0, 0, 30}, Times{30, 30, 80}, Times{80, 80, 90}));
}

TEST_F(IssuerTest, AtAQueueDepthThinkTimeWaitsForAnIdleDrive) {
  rule_ = TimingRule::kQueueDepth;
  depth_ = 2;
  think_ = true;
  service_ns_[0] = 100;
  service_ns_[4096] = 40;
  EXPECT_THAT(Run({Read(0, 10, 0), Read(5, 10, 4096), Read(60, 70, 8192)}),
              ElementsAre(Times{0, 0, 100}, Times{0, 0, 40}, Times{150, 150, 160}))
      << "idle at 100, and 50 ns of thinking";
}

TEST_F(IssuerTest, BatchesAreOneSubmissionAndOneStamp) {
  rule_ = TimingRule::kQueueDepth;
  depth_ = 4;
  batch_ = 4;
  EXPECT_THAT(Run({Read(0, {}, 0), Read(0, {}, 4096), Read(0, {}, 8192)}),
              ElementsAre(Times{0, 0, 10}, Times{0, 0, 10}, Times{0, 0, 10}));
}

TEST_F(IssuerTest, SmallReadsWithoutABufferHaveThatOfTheirSlot) {
  rule_ = TimingRule::kQueueDepth;
  depth_ = 2;
  std::array<std::byte, 2 * 4096> memory{};
  read_buffers_ = memory.data();
  read_buffer_bytes_ = 4096;
  service_ns_[0] = 1'000;
  // The first stays; the others go through the second slot, one after the other.
  Run({Read(0, {}, 0), Read(0, {}, 8192, 512), Read(0, {}, 16384), Read(0, {}, 32768, 8192),
       Write(0, {}, 65536)});
  EXPECT_THAT(buffers_, ElementsAre(memory.data(), memory.data() + 4096, memory.data() + 4096,
                                    nullptr, nullptr));
}

TEST_F(IssuerTest, AConflictingIoWaitsForTheEarlierOneAndOthersPassIt) {
  service_ns_[0] = 100;
  EXPECT_THAT(Run({Write(0, {}, 0, 8192), Read(10, {}, 4096), Read(20, {}, 16384)}),
              ElementsAre(Times{0, 0, 100}, Times{10, 100, 110}, Times{20, 20, 30}));
  EXPECT_THAT(backlog_ns_, ElementsAre(0, 90, 0));
  EXPECT_EQ(totals_.overlaps_ordered, 1u);
}

TEST_F(IssuerTest, ConflictingIosThatWaitKeepTheirOrder) {
  service_ns_[0] = 100;
  service_ns_[512] = 50;
  // Both wait for the first; the third also conflicts with the second.
  EXPECT_THAT(Run({Write(0, {}, 0, 4096), Write(1, {}, 512, 512), Read(2, {}, 0, 1024)}),
              ElementsAre(Times{0, 0, 100}, Times{1, 100, 150}, Times{2, 150, 250}));
}

TEST_F(IssuerTest, OverlapsAreIssuedAsTheyComeWhenAskedTo) {
  order_overlaps_ = false;
  service_ns_[0] = 100;
  EXPECT_THAT(Run({Write(0, {}, 0, 8192), Read(10, {}, 4096)}),
              ElementsAre(Times{0, 0, 100}, Times{10, 10, 20}));
}

TEST_F(IssuerTest, AnErrorStopsTheRunAfterWhatIsInFlight) {
  errors_[4096] = EIO;
  service_ns_[0] = 500;
  const std::vector<Times> times = Run({Read(0, {}, 0), Read(10, {}, 4096), Read(100, {}, 8192)});
  EXPECT_EQ(times.size(), 2u);
  EXPECT_TRUE(totals_.stopped_early);
  EXPECT_THAT(totals_.stop_reason, HasSubstr("Input/output error"));
  EXPECT_THAT(totals_.stop_reason, HasSubstr("byte 4096"));
  EXPECT_EQ(results_[1].error, static_cast<uint32_t>(EIO));
  EXPECT_EQ(totals_.last_complete_ns - kStartNs, 500) << "the first was waited for";
}

TEST_F(IssuerTest, AnErrorIsCountedAndPassedOverWhenAskedTo) {
  errors_[4096] = EIO;
  stop_on_error_ = false;
  EXPECT_EQ(Run({Read(0, {}, 0), Read(10, {}, 4096), Read(100, {}, 8192)}).size(), 3u);
  EXPECT_FALSE(totals_.stopped_early);
  EXPECT_EQ(counters_.errors.load(), 1u);
}

TEST_F(IssuerTest, AStopFlagIssuesNothingMore) {
  stop_ = true;
  EXPECT_EQ(Run({Read(0, {}, 0)}).size(), 0u);
  EXPECT_TRUE(totals_.stopped_early);
  EXPECT_EQ(totals_.stop_reason, "interrupted");
}

TEST_F(IssuerTest, NothingIsIssuedAfterTheDurationAndTheRunIsWhole) {
  duration_ns_ = 100;
  EXPECT_EQ(Run({Read(0, {}, 0), Read(100, {}, 4096), Read(101, {}, 8192)}).size(), 2u);
  EXPECT_FALSE(totals_.stopped_early);
}

TEST_F(IssuerTest, AThousandIosInManyOrdersAllCompleteOnce) {
  rule_ = TimingRule::kMaxOrder;
  depth_ = 16;
  batch_ = 4;
  std::vector<IoRecord> records;
  for (int i = 0; i < 1'000; ++i) {
    const uint64_t at = static_cast<uint64_t>(i * 37 % 50) * 2048;
    records.push_back(
        Io(i % 3 == 0 ? Op::kWrite : Op::kRead, i * 10, i * 10 + 5 + i * 7919 % 300, at, 4096));
    service_ns_[at] = 3 + static_cast<int64_t>(at / 2048 % 40);
  }
  EXPECT_EQ(Run(records).size(), 1'000u);
  EXPECT_FALSE(totals_.stopped_early);
  // By the definition: issued only after all that had completed before its arrival.
  for (size_t i = 0; i < records.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (*records[j].complete_ns <= *records[i].queue_ns) {
        ASSERT_LE(results_[j].complete_ns, results_[i].issue_ns) << j << " before " << i;
      }
    }
  }
}

// Moves on by 10 ns at every look. Who sleeps on it wakes late by so many hundredths of the sleep.
class TickingClock : public Clock {
 public:
  explicit TickingClock(int64_t oversleep_percent = 0) : oversleep_percent_(oversleep_percent) {}
  int64_t NowNs() override { return now_ns_ += 10; }
  void SleepUntilNs(int64_t deadline_ns) override {
    if (deadline_ns <= now_ns_) return;
    slept_until_ns.push_back(deadline_ns);
    now_ns_ = deadline_ns + (deadline_ns - now_ns_) * oversleep_percent_ / 100;
  }
  std::vector<int64_t> slept_until_ns;

 private:
  const int64_t oversleep_percent_;
  int64_t now_ns_ = 0;
};

// Completes one request at a given time, and notes when it was first asked to wait for that.
class OneRequestEngine : public Engine {
 public:
  OneRequestEngine(Clock* clock, int64_t complete_ns) : clock_(clock), complete_ns_(complete_ns) {}
  std::string_view name() const override { return "one request"; }
  std::string mode() const override { return ""; }
  uint32_t depth() const override { return 1; }
  uint32_t in_flight() const override { return out_ ? 1 : 0; }
  Result<size_t> Submit(std::span<const EngineRequest> requests) override {
    tag_ = requests[0].tag;
    out_ = true;
    return size_t{1};
  }
  Result<size_t> Reap(std::span<EngineCompletion> out, int64_t deadline_ns) override {
    if (const int64_t now_ns = clock_->NowNs(); now_ns < complete_ns_ && deadline_ns > now_ns) {
      if (!first_wait_ns) first_wait_ns = now_ns;
      clock_->SleepUntilNs(std::min(deadline_ns, complete_ns_));
    }
    if (clock_->NowNs() < complete_ns_) return size_t{0};
    out[0] = {.tag = tag_, .bytes_done = 4096, .complete_ns = complete_ns_};
    out_ = false;
    return size_t{1};
  }
  Status Rehearse() override {
    rehearsals_ns.push_back(clock_->NowNs());
    EXPECT_FALSE(out_);
    return OkStatus();
  }
  std::optional<int64_t> first_wait_ns;
  std::vector<int64_t> rehearsals_ns;

 private:
  Clock* const clock_;
  const int64_t complete_ns_;
  uint64_t tag_ = 0;
  bool out_ = false;
};

// Stands still from `stop_ns` until `resume_ns`: who looks or wakes in between does so after it.
class StoppingClock : public Clock {
 public:
  StoppingClock(int64_t stop_ns, int64_t resume_ns) : stop_ns_(stop_ns), resume_ns_(resume_ns) {}
  int64_t NowNs() override {
    PassTo(now_ns_ + 10);
    return now_ns_;
  }
  void SleepUntilNs(int64_t deadline_ns) override { PassTo(std::max(deadline_ns, now_ns_)); }

 private:
  void PassTo(int64_t ns) {
    now_ns_ = ns >= stop_ns_ && now_ns_ < stop_ns_ ? std::max(ns, resume_ns_) : ns;
  }
  const int64_t stop_ns_;
  const int64_t resume_ns_;
  int64_t now_ns_ = 0;
};

// A drive of one service time that stamps completions when it is asked for them, as the kernel's
// interfaces do. One that works within the call holds its caller so long. The engine may hold a
// request back first.
class AskedEngine : public Engine {
 public:
  AskedEngine(Clock* clock, int64_t service_ns, bool within_call, int64_t held_back_ns)
      : clock_(clock),
        service_ns_(service_ns),
        within_call_(within_call),
        held_back_ns_(held_back_ns) {}
  std::string_view name() const override { return "asked"; }
  std::string mode() const override { return ""; }
  uint32_t depth() const override { return 8; }
  uint32_t in_flight() const override { return static_cast<uint32_t>(out_.size()); }
  Result<size_t> Submit(std::span<const EngineRequest> requests) override {
    for (const EngineRequest& request : requests) {
      clock_->SleepUntilNs(clock_->NowNs() + held_back_ns_);
      out_.push_back({request.tag, clock_->NowNs() + service_ns_});
      if (within_call_) clock_->SleepUntilNs(out_.back().complete_ns);
    }
    return requests.size();
  }
  Result<size_t> Reap(std::span<EngineCompletion> out, int64_t deadline_ns) override {
    bool woken = false;
    while (true) {
      const int64_t now_ns = clock_->NowNs();
      size_t count = 0;
      while (!out_.empty() && out_.front().complete_ns <= now_ns) {
        out[count++] = {.tag = out_.front().tag,
                        .complete_ns = now_ns,
                        .held_back_ns = held_back_ns_,
                        .woken = woken};
        out_.pop_front();
      }
      if (count > 0 || now_ns >= deadline_ns) return count;
      clock_->SleepUntilNs(out_.empty() ? deadline_ns
                                        : std::min(deadline_ns, out_.front().complete_ns));
      woken = true;
    }
  }

 private:
  struct Out {
    uint64_t tag = 0;
    int64_t complete_ns = 0;
  };
  Clock* const clock_;
  const int64_t service_ns_;
  const bool within_call_;
  const int64_t held_back_ns_;
  std::deque<Out> out_;
};

// Reads on such a drive, due so long after the start at 0, all to other places.
class StoppedHostTest : public testing::Test {
 protected:
  static constexpr int64_t kUs = 1'000;

  void Run(const std::vector<int64_t>& due_ns, StoppingClock clock, int64_t service_ns,
           bool within_call, const IssuerOptions& issuer_options) {
    AskedEngine engine(&clock, service_ns, within_call, held_back_ns_);
    PlanOptions options;
    options.target_of_device = {0};
    options.address_map_of_device = {AddressMap({}, 0, kTargetBytes, kTargetBytes, 512)};
    options.targets = {PlanTarget{.size_bytes = kTargetBytes, .abilities = {}}};
    std::vector<IoRecord> records;
    for (const int64_t due : due_ns) records.push_back(Read(due, {}, records.size() * 4096));
    FakeRecords stream(std::move(records));
    Plan plan(&stream, options);
    InlineFeed feed(&plan);
    struct : IssueSink {
      void Done(const IssuedIo& io) override { done[io.sequence] = io; }
      std::map<uint64_t, IssuedIo> done;
    } sink;
    IssueCounters counters;
    const std::atomic<bool> stop = false;
    Issuer issuer(&engine, &clock, &feed, &sink, &counters, StopFlags{&stop}, issuer_options);
    ASSERT_TRUE(issuer.Run(0).ok());
    totals_ = issuer.totals();
    LatenessSplit split({issuer_options.depth});
    for (const auto& [sequence, io] : sink.done) {
      ios_.push_back(io);
      parts_.push_back(split.Add(io));
      EXPECT_EQ(parts_.back().lateness_ns + parts_.back().backlog_ns + service_of(io),
                io.complete_ns - io.due_ns);
      EXPECT_GE(service_of(io), 0);
    }
    ASSERT_EQ(ios_.size(), due_ns.size());
  }
  static int64_t service_of(const IssuedIo& io) { return io.complete_ns - io.issue_ns; }

  int64_t held_back_ns_ = 0;
  std::vector<IssuedIo> ios_;  // in the order of the plan
  std::vector<LatenessSplit::Parts> parts_;
  IssueTotals totals_;
};

// Three are out when the host stops at 20 us, and come to 50 us each some time after that. When it
// looks again at 5,000 all it knows is that they took 20 us at least.
TEST_F(StoppedHostTest, CompletionsThatPileUpInAStopAreDatedByTheLookBefore) {
  Run({1 * kUs, 2 * kUs, 3 * kUs, 9'000 * kUs}, {20 * kUs, 5'000 * kUs}, 50 * kUs, false,
      {.depth = 8, .poll_ns = 10'000 * kUs});
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_GE(ios_[i].complete_ns, 19 * kUs);
    EXPECT_LE(ios_[i].complete_ns, 20 * kUs);
    EXPECT_GE(ios_[i].seen_ns, 5'000 * kUs);
  }
  EXPECT_EQ(totals_.stalled_completions, 3u);
  EXPECT_EQ(ios_[3].complete_ns, ios_[3].seen_ns);
  EXPECT_NEAR(static_cast<double>(service_of(ios_[3])), 50e3, 100);
}

TEST_F(StoppedHostTest, WhatTheEngineHoldsBackIsTheHostsNotTheDrives) {
  held_back_ns_ = 25 * kUs;
  Run({1 * kUs, 500 * kUs}, {INT64_MAX - 1, INT64_MAX}, 50 * kUs, false,
      {.depth = 8, .poll_ns = 1'000 * kUs});
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(static_cast<double>(service_of(ios_[i])), 50e3, 100);
    EXPECT_NEAR(static_cast<double>(parts_[i].lateness_ns), 25e3, 100);
  }
}

// The thread sleeps for a completion, until 700 us at the most, and is woken at 3,000.
TEST_F(StoppedHostTest, ASleeperKnowsOfAStopByItsOwnDeadline) {
  Run({1 * kUs, 1'000 * kUs}, {100 * kUs, 3'000 * kUs}, 200 * kUs, false,
      {.depth = 8, .spin_ns = 50 * kUs, .poll_ns = 0});
  EXPECT_EQ(totals_.stalled_completions, 1u);
  EXPECT_LE(ios_[0].complete_ns, 1'000 * kUs);
  EXPECT_GE(parts_[1].lateness_ns, 1'900 * kUs);
}

// It sleeps for drives of half a second, too: their time is not the host's.
TEST_F(StoppedHostTest, ASlowDriveIsNoStop) {
  Run({1 * kUs, 10 * kUs, 1'000'000 * kUs}, {INT64_MAX - 1, INT64_MAX}, 500'000 * kUs, false,
      {.depth = 8, .poll_ns = 100 * kUs});
  EXPECT_EQ(totals_.stalled_completions, 0u);
  EXPECT_EQ(totals_.woken_completions, 3u);
  for (const IssuedIo& io : ios_) {
    EXPECT_NEAR(static_cast<double>(service_of(io)), 500e6, 1e3);
  }
}

// A driver that does the work within the call, for 300 us: after a few it is known for one, and
// what comes due while it holds the thread waits for it.
TEST_F(StoppedHostTest, ADriverThatWorksWithinTheCallHasItAsServiceTime) {
  std::vector<int64_t> due_ns;
  for (int64_t i = 0; i < 10; ++i) due_ns.push_back(i * 1'000 * kUs + kUs);
  due_ns.push_back(9'100 * kUs);
  Run(due_ns, {INT64_MAX - 1, INT64_MAX}, 300 * kUs, true, {.depth = 8, .poll_ns = 100 * kUs});
  for (size_t i = 4; i < 10; ++i) {
    EXPECT_NEAR(static_cast<double>(service_of(ios_[i])), 300e3, 100) << i;
    EXPECT_LE(parts_[i].lateness_ns, kUs) << i;
  }
  EXPECT_NEAR(static_cast<double>(service_of(ios_[10])), 300e3, 100);
  EXPECT_NEAR(static_cast<double>(parts_[10].backlog_ns), 201e3, 1'000);
  EXPECT_LE(parts_[10].lateness_ns, kUs);
  EXPECT_EQ(totals_.stalled_submissions, 3u);
  EXPECT_EQ(totals_.done_within_call, 8u);
}

// The host stops from 4.9 to 50 ms, while four come due at once on such a drive.
TEST_F(StoppedHostTest, AStopBeforeACallIsTheHostsAlsoForThoseBehind) {
  std::vector<int64_t> due_ns;
  for (int64_t i = 0; i < 5; ++i) due_ns.push_back(i * 1'000 * kUs + kUs);
  for (int64_t i = 5; i < 9; ++i) due_ns.push_back(5'000 * kUs + i * kUs);
  Run(due_ns, {4'900 * kUs, 50'000 * kUs}, 300 * kUs, true, {.depth = 8, .poll_ns = 100 * kUs});
  for (size_t i = 5; i < 9; ++i) {
    // Each has the calls of those before it as backlog, and the stop as lateness.
    const double calls_ns = static_cast<double>(i - 5) * 300e3;
    EXPECT_NEAR(static_cast<double>(parts_[i].backlog_ns), calls_ns, 10e3) << i;
    EXPECT_NEAR(static_cast<double>(parts_[i].lateness_ns), 45'000e3, 20e3) << i;
  }
}

// Runs reads that are due so long after the start, and returns the last one.
IssuedIo RunReads(const std::vector<int64_t>& due_ns, const IssuerOptions& issuer_options,
                  TickingClock* clock, OneRequestEngine* engine) {
  PlanOptions options;
  options.target_of_device = {0};
  options.address_map_of_device = {AddressMap({}, 0, kTargetBytes, kTargetBytes, 512)};
  options.targets = {PlanTarget{.size_bytes = kTargetBytes, .abilities = {}}};
  // What is left out keeps its time: the recording begins with it.
  options.skip_writes = true;
  std::vector<IoRecord> records = {Io(Op::kWrite, 0, {}, 0, 4096)};
  for (const int64_t due : due_ns) records.push_back(Read(due, {}, 0));
  FakeRecords stream(std::move(records));
  Plan plan(&stream, options);
  InlineFeed feed(&plan);
  struct : IssueSink {
    void Done(const IssuedIo& io) override { done = io; }
    IssuedIo done;
  } sink;
  IssueCounters counters;
  const std::atomic<bool> stop = false;
  Issuer issuer(engine, clock, &feed, &sink, &counters, StopFlags{&stop}, issuer_options);
  EXPECT_TRUE(issuer.Run(kStartNs).ok());
  EXPECT_EQ(counters.completed.load(), due_ns.size());
  return sink.done;
}

// When the issuer first sleeps for the completion of a request that is submitted at 1,000 and
// something, if it does, polling for 5,000.
std::optional<int64_t> FirstSleepNs(int64_t complete_ns) {
  TickingClock clock;
  OneRequestEngine engine(&clock, complete_ns);
  RunReads({0}, {.poll_ns = 5'000}, &clock, &engine);
  return engine.first_wait_ns;
}

TEST(IssuerPollTest, ACompletionWithinThePollingTimeIsNotSleptFor) {
  EXPECT_EQ(FirstSleepNs(kStartNs + 4'000), std::nullopt);
}

TEST(IssuerPollTest, AfterThePollingTimeTheThreadSleeps) {
  const std::optional<int64_t> first = FirstSleepNs(kStartNs + 50'000);
  ASSERT_TRUE(first.has_value());
  EXPECT_GE(*first, kStartNs + 5'000);
  EXPECT_LT(*first, kStartNs + 6'000);
}

// One sleep until the spin begins, 1.95 ms long, would end 195 us late, 145 us after the I/O is
// due.
TEST(IssuerSleepTest, TheLastPartOfALongSleepIsAShortOne) {
  constexpr int64_t kDueNs = 2'000'000;
  TickingClock clock(/*oversleep_percent=*/10);
  OneRequestEngine engine(&clock, kStartNs + kDueNs + 1'000);
  const IssuedIo io = RunReads({kDueNs}, {.spin_ns = 50'000}, &clock, &engine);
  EXPECT_EQ(io.due_ns, kStartNs + kDueNs);
  EXPECT_LT(io.issue_ns - io.due_ns, 100);
}

const IssuerOptions kSpins = {.spin_ns = 150'000, .spin_in_flight_ns = 50'000};

TEST(IssuerSleepTest, WithNothingOutThePollingBeginsASpinBeforeTheDueTime) {
  TickingClock clock;
  OneRequestEngine engine(&clock, kStartNs + 2'001'000);
  RunReads({2'000'000}, kSpins, &clock, &engine);
  // The long sleep, the short one, and that for the completion.
  ASSERT_EQ(clock.slept_until_ns.size(), 3u);
  EXPECT_EQ(clock.slept_until_ns[1], kStartNs + 2'000'000 - 150'000);
}

TEST(IssuerSleepTest, PollingWithNothingOutRehearsesUntilShortlyBeforeTheDueTime) {
  TickingClock clock;
  OneRequestEngine engine(&clock, kStartNs + 2'001'000);
  RunReads({2'000'000}, kSpins, &clock, &engine);
  ASSERT_GE(engine.rehearsals_ns.size(), 1000u);
  EXPECT_LT(engine.rehearsals_ns.front(), kStartNs + 2'000'000 - 149'000);
  EXPECT_LT(engine.rehearsals_ns.back(), kStartNs + 2'000'000 - 9'900);
  EXPECT_GT(engine.rehearsals_ns.back(), kStartNs + 2'000'000 - 11'000);
}

TEST(IssuerSleepTest, PollingWithARequestOutDoesNotRehearse) {
  TickingClock clock;
  OneRequestEngine engine(&clock, kStartNs + 3'000'000);
  RunReads({0, 2'000'000}, kSpins, &clock, &engine);
  EXPECT_THAT(engine.rehearsals_ns, testing::IsEmpty());
}

// The first sleep, of 1.6 ms, ends 480 us late, 230 us after the polling should have begun.
TEST(IssuerSleepTest, AfterALateWakeupThePollingIsLonger) {
  TickingClock clock(/*oversleep_percent=*/30);
  OneRequestEngine engine(&clock, kStartNs + 2'001'000);
  RunReads({2'000'000, 10'000'000}, kSpins, &clock, &engine);
  ASSERT_GE(clock.slept_until_ns.size(), 2u);
  const int64_t polling_ns = 230'000 * 3 / 2;
  EXPECT_NEAR(static_cast<double>(clock.slept_until_ns[1] - kStartNs),
              10'000'000 - polling_ns - 250'000, 1'000);
}

// It waits for the first read's completion, which comes after the second one is due.
TEST(IssuerSleepTest, WithARequestOutThePollingIsShorter) {
  TickingClock clock;
  OneRequestEngine engine(&clock, kStartNs + 3'000'000);
  RunReads({0, 2'000'000}, kSpins, &clock, &engine);
  ASSERT_GE(clock.slept_until_ns.size(), 2u);
  EXPECT_EQ(clock.slept_until_ns[1], kStartNs + 2'000'000 - 50'000);
}

// Completes everything at once. While `held_up` is set, who asks it for completions is not let go,
// as a thread whose CPU was taken away.
class InstantEngine : public Engine {
 public:
  explicit InstantEngine(std::atomic<bool>* held_up = nullptr) : held_up_(held_up) {}
  std::string_view name() const override { return "instant"; }
  std::string mode() const override { return ""; }
  uint32_t depth() const override { return kDepth; }
  uint32_t in_flight() const override { return static_cast<uint32_t>(out_.size()); }
  Result<size_t> Submit(std::span<const EngineRequest> requests) override {
    if (fails) {
      failed.store(true);
      return Status(StatusCode::kIoError, "the ring is broken");
    }
    for (const EngineRequest& request : requests) {
      offsets.push_back(request.offset_bytes);
      out_.push_back(request.tag);
    }
    return requests.size();
  }
  Result<size_t> Reap(std::span<EngineCompletion> out, int64_t /*deadline_ns*/) override {
    while (held_up_ != nullptr && held_up_->load()) std::this_thread::yield();
    const size_t count = std::min(out.size(), out_.size());
    for (size_t i = 0; i < count; ++i) {
      out[i] = {.tag = out_[i], .bytes_done = 4096, .complete_ns = Clock::Monotonic()->NowNs()};
    }
    out_.erase(out_.begin(), out_.begin() + static_cast<ptrdiff_t>(count));
    return count;
  }

  static constexpr uint32_t kDepth = 64;
  std::vector<uint64_t> offsets;  // in the order of submission
  bool fails = false;
  std::atomic<bool> failed = false;

 private:
  std::atomic<bool>* const held_up_;
  std::vector<uint64_t> out_;
};

// Reads, one each 100 us of the real clock, by two threads of which the first is held up after the
// first read until all but `left` were issued, or the other's engine failed.
class IssuerReserveTest : public testing::Test {
 protected:
  static constexpr uint64_t kIos = 200;

  Status Run(uint64_t left) {
    PlanOptions plan_options;
    plan_options.target_of_device = {0};
    plan_options.address_map_of_device = {AddressMap({}, 0, kTargetBytes, kTargetBytes, 512)};
    plan_options.targets = {PlanTarget{.size_bytes = kTargetBytes, .abilities = {}}};
    std::vector<IoRecord> records;
    for (uint64_t i = 0; i < kIos; ++i) {
      records.push_back(Read(static_cast<int64_t>(i) * 100'000, {}, i * 4096));
    }
    FakeRecords stream(std::move(records));
    Plan plan(&stream, plan_options);
    InlineFeed feed(&plan);
    const std::atomic<bool> stop = false;
    Turn turn;
    Issuer issuer(&first_, Clock::Monotonic(), &feed, &sink_, &counters_, StopFlags{&stop},
                  {.depth = InstantEngine::kDepth, .turn = &turn});
    std::thread reserve([&] { ReserveThread(&issuer, &reserve_, Clock::Monotonic()).StandBy(); });
    std::thread releaser([&] {
      while (counters_.issued.load() < kIos - left && !reserve_.failed.load())
        std::this_thread::yield();
      held_up_.store(false);
    });
    const Status status = issuer.Run(Clock::Monotonic()->NowNs());
    reserve.join();
    releaser.join();
    totals_ = issuer.totals();
    return status;
  }

  struct Sink : IssueSink {
    void Done(const IssuedIo& io) override { done.push_back(io.sequence); }
    std::vector<uint64_t> done;
  };
  std::atomic<bool> held_up_ = true;
  InstantEngine first_{&held_up_};
  InstantEngine reserve_;
  Sink sink_;
  IssueCounters counters_;
  IssueTotals totals_;
};

TEST_F(IssuerReserveTest, WhatTheFirstThreadIsKeptFromTheOtherIssuesInOrder) {
  const Status status = Run(/*left=*/50);
  ASSERT_TRUE(status.ok()) << status.message();
  // The first thread is held up when it asks for the completion of the first read.
  ASSERT_FALSE(first_.offsets.empty());
  EXPECT_EQ(first_.offsets[0], 0u);
  EXPECT_GE(reserve_.offsets.size(), kIos - 50 - 1);
  EXPECT_EQ(totals_.issued_by_reserve, reserve_.offsets.size());
  // Each in the plan's order, and together all of them, once.
  std::vector<uint64_t> all = first_.offsets;
  all.insert(all.end(), reserve_.offsets.begin(), reserve_.offsets.end());
  EXPECT_TRUE(std::is_sorted(first_.offsets.begin(), first_.offsets.end()));
  EXPECT_TRUE(std::is_sorted(reserve_.offsets.begin(), reserve_.offsets.end()));
  std::sort(all.begin(), all.end());
  ASSERT_EQ(all.size(), kIos);
  for (uint64_t i = 0; i < kIos; ++i) EXPECT_EQ(all[i], i * 4096);
  std::sort(sink_.done.begin(), sink_.done.end());
  EXPECT_EQ(sink_.done.size(), kIos);
  EXPECT_EQ(std::unique(sink_.done.begin(), sink_.done.end()), sink_.done.end());
}

TEST_F(IssuerReserveTest, AFailureOfItsEngineFailsTheRun) {
  reserve_.fails = true;
  const Status status = Run(/*left=*/0);
  EXPECT_EQ(status.message(), "the ring is broken");
}

}  // namespace
}  // namespace blktape
