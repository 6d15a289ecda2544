#include "replay/replayer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "replay/engine/drive_model.h"
#include "replay/issue/lane_progress.h"
#include "replay/plan/trace_stream.h"
#include "replay/run.h"
#include "tests/replay/plan/fake_records.h"
#include "tests/replay/plan/temp_trace.h"

namespace blktape {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::SizeIs;

const std::atomic<bool> kRunOn = false;

Result<proto::ReplayOutcome> Replay(const ReplayOptions& options) {
  return RunReplay(options, kRunOn, nullptr);
}

std::vector<IoRecord> Session() {
  return {Write(1'000, 50'000, 0, 8192), Read(2'000, 90'000, 1 << 20),
          Io(Op::kFlush, 60'000, 400'000, 0, 0), Read(1'000'000, 1'090'000, 4096, 65536)};
}

TEST(ReplayerTest, TheResultOfAReplayHoldsTheSameOpsAddressesAndSizesInTheSameOrder) {
  ReplayOptions options;
  options.trace_path = TempTrace("session.tape", Session());
  options.engine = "simulated";
  options.result_path = FreshPath("session-result.tape");
  const auto outcome = Replay(options);
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(outcome->planned(), 4);
  EXPECT_EQ(outcome->issued(), 4);
  EXPECT_EQ(outcome->completed(), 4);
  EXPECT_EQ(outcome->errors(), 0);
  EXPECT_FALSE(outcome->stopped_early());
  EXPECT_EQ(outcome->woken_completions(), 0) << "in virtual time nobody wakes late";
  EXPECT_EQ(outcome->wake_ups(), 0);

  const TraceContent result = ReadTrace(options.result_path);
  ASSERT_THAT(result.records, SizeIs(4));
  const std::vector<IoRecord> session = Session();
  for (size_t i = 0; i < session.size(); ++i) {
    EXPECT_EQ(result.records[i].op, session[i].op);
    EXPECT_EQ(result.records[i].lba, session[i].lba);
    EXPECT_EQ(result.records[i].bytes, session[i].bytes);
    EXPECT_EQ(result.records[i].ordinal, i);
    EXPECT_EQ(*result.records[i].queue_ns, *session[i].queue_ns - 1'000);
    EXPECT_EQ(result.records[i].issue_ns, result.records[i].queue_ns)
        << "virtual time is never late";
  }
  // The drive model: a read at an idle drive costs its base and its bytes over the link.
  const DriveModel model;
  const int64_t transfer_ns =
      65536 * int64_t{1'000'000'000} / static_cast<int64_t>(model.read_bandwidth);
  EXPECT_NEAR(*result.records[3].complete_ns - *result.records[3].issue_ns,
              model.read_base_ns + transfer_ns, 1);

  EXPECT_EQ(result.header.source(), "replay");
  EXPECT_EQ(result.header.replay().rule(), "timed x1");
  EXPECT_EQ(result.header.replay().engine(), "simulated");
  EXPECT_THAT(result.header.replay().trace_sha256(), SizeIs(64));
  EXPECT_EQ(result.header.replay().trace_name(), "session.tape");
  ASSERT_TRUE(result.summary.has_value());
  EXPECT_EQ(result.summary->replay().completed(), 4);
}

// The second pass would read what the first one emptied; a drive answers that without looking.
TEST(ReplayerTest, WhatAFurtherPassReadsIsNotDiscarded) {
  const std::vector<IoRecord> session = {Read(1'000, 90'000, 0, 4096),
                                         Io(Op::kDiscard, 100'000, 200'000, 0, 10 * 4096),
                                         Io(Op::kDiscard, 300'000, 400'000, 0, 4096)};
  ReplayOptions options;
  options.trace_path = TempTrace("discards.tape", session);
  options.engine = "simulated";
  const auto replayed = [&] {
    options.result_path = FreshPath("discards-result.tape");
    const auto outcome = Replay(options);
    EXPECT_TRUE(outcome.ok()) << outcome.status().message();
    std::vector<std::pair<uint64_t, uint64_t>> discards;
    for (const IoRecord& io : ReadTrace(options.result_path).records) {
      if (io.op == Op::kDiscard) discards.emplace_back(io.lba->sectors, io.bytes);
    }
    return discards;
  };
  EXPECT_THAT(replayed(), ElementsAre(Pair(0, 10 * 4096), Pair(0, 4096)));
  options.loops = 2;
  EXPECT_THAT(replayed(), ElementsAre(Pair(8, 9 * 4096), Pair(8, 9 * 4096)));
}

TEST(ReplayerTest, WhatADeviceThatIsLeftOutDidIsNoReasonToRefuse) {
  IoRecord erase = Io(Op::kSecureErase, 1'000, 2'000, 0, 4096);
  IoRecord read = Read(3'000, 4'000);
  read.device = 1;
  ReplayOptions options;
  options.trace_path = TempTrace("erased.tape", {erase, read}, /*devices=*/2);
  const std::string target = FreshPath("erased.img");
  std::ofstream(target) << std::string(1 << 20, '\0');
  options.mappings = {{"sda", target}, {"sdb", target}};
  EXPECT_THAT(PreviewReplay(options, /*whole=*/true, kRunOn).status().message(),
              HasSubstr("secure_erase"));
  options.mappings = {{"sda", "none"}, {"sdb", target}};
  const auto preview = PreviewReplay(options, /*whole=*/true, kRunOn);
  ASSERT_TRUE(preview.ok()) << preview.status().message();
  EXPECT_EQ(preview->planned, 1u);
  EXPECT_EQ(preview->recorded_ns, 2'000);
  options.loops = 5;
  EXPECT_EQ(PreviewReplay(options, /*whole=*/false, kRunOn)->recorded_ns, 10'000);
  options.loops = 0;
  EXPECT_EQ(PreviewReplay(options, /*whole=*/false, kRunOn)->recorded_ns, std::nullopt);
}

TEST(ReplayerTest, RecordedDevicesThatShareTheAddressesOfATargetAreNamed) {
  // sda touches [0, 8 KiB), sdb [4 KiB, 12 KiB), sdc [64 KiB, 68 KiB).
  std::vector<IoRecord> records = {Read(10, 20, 0, 8192), Read(30, 40, 4096, 8192),
                                   Read(50, 60, 65536, 4096)};
  for (uint32_t device = 0; device < 3; ++device) records[device].device = device;
  ReplayOptions options;
  options.trace_path = TempTrace("shared.tape", records, /*devices=*/3);
  const std::string one = FreshPath("one.img");
  const std::string other = FreshPath("other.img");
  for (const std::string& path : {one, other}) std::ofstream(path) << std::string(1 << 20, '\0');
  const auto shared = [&options] {
    const auto preview = PreviewReplay(options, /*whole=*/false, kRunOn);
    EXPECT_TRUE(preview.ok()) << preview.status().message();
    return preview->shared;
  };
  options.mappings = {{"", one}};
  EXPECT_THAT(shared(), ElementsAre("sda, sdb on " + one));
  options.mappings = {{"sda", one}, {"sdb", other}, {"sdc", one}};
  EXPECT_THAT(shared(), IsEmpty());
  // The beginning of each moves to the start of the target.
  options.remap = "offset";
  EXPECT_THAT(shared(), ElementsAre("sda, sdc on " + one));
  options.mappings = {{"sda", one}, {"sdb", "none"}, {"sdc", "none"}};
  EXPECT_THAT(shared(), IsEmpty());
}

TEST(ReplayerTest, WhatIsSaidOfADeviceByNameGoesBeforeTheTargetOfAllOthers) {
  IoRecord read = Read(3'000, 4'000);
  read.device = 1;
  ReplayOptions options;
  options.trace_path = TempTrace("named.tape", {Write(1'000, 2'000), read}, /*devices=*/2);
  const std::string all = FreshPath("all.img");
  const std::string named = FreshPath("named.img");
  for (const std::string& path : {all, named}) std::ofstream(path) << std::string(1 << 20, '\0');
  options.mappings = {{"", all}, {"sda", "none"}};
  const auto left_out = PreviewReplay(options, /*whole=*/true, kRunOn);
  ASSERT_TRUE(left_out.ok()) << left_out.status().message();
  EXPECT_THAT(left_out->planned_by_op, ElementsAre(Pair("read", 1)));
  EXPECT_THAT(left_out->skipped, ElementsAre(Pair("device not mapped", 1)));
  // With both named nothing goes to the other target: it is not opened.
  options.mappings = {{"", all}, {"sda", named}, {"sdb", named}};
  const auto both = PreviewReplay(options, /*whole=*/true, kRunOn);
  ASSERT_TRUE(both.ok()) << both.status().message();
  ASSERT_THAT(both->targets, SizeIs(1));
  EXPECT_EQ(both->targets[0].path(), named);
}

TEST(ReplayerTest, NoMoreMemoryIsTakenThanTheTraceCouldFill) {
  constexpr uint64_t kMiB = 1 << 20;
  const std::string path =
      TempTrace("large.tape", {Read(10, 20, 0, 12 * kMiB), Write(30, 40, 0, 20 * kMiB)});
  const auto stream = TraceStream::Open(path, {});
  ASSERT_TRUE(stream.ok());
  ReplayOptions options;
  options.buffer_bytes = 4096 * kMiB;
  // What all fill is at most a half.
  EXPECT_GE(ChooseBufferBytes(options, **stream), 2 * 32 * kMiB);
  EXPECT_LE(ChooseBufferBytes(options, **stream), 2 * 33 * kMiB);
  options.buffer_bytes = 40 * kMiB;
  EXPECT_EQ(ChooseBufferBytes(options, **stream), 40 * kMiB);
  const auto without_end = TraceStream::Open(path, {.loops = 0});
  ASSERT_TRUE(without_end.ok());
  EXPECT_EQ(ChooseBufferBytes(options, **without_end), 40 * kMiB);
}

TEST(ReplayerTest, ATimedRunOfLargeRequestsTakesMemoryForAsManyAsCanLieReady) {
  constexpr uint64_t kKiB = 1024;
  const auto memory_at = [](uint64_t bytes, TimingRule rule) -> uint64_t {
    ReplayOptions options;
    options.rule = rule;
    // A flush has no size. Often enough that what all of them fill is no limit.
    IoRecord flush = Read(30, 40, 0, 0);
    flush.op = Op::kFlush;
    const std::string path = TempTrace("of_a_size.tape", {Read(10, 20, 0, bytes), flush});
    const auto stream = TraceStream::Open(path, {.loops = 1'000'000});
    EXPECT_TRUE(stream.ok());
    return ChooseBufferBytes(options, **stream) / kKiB / 1024;
  };
  // 4096 of them, but 32 MiB at least and 256 at most.
  EXPECT_EQ(memory_at(4 * kKiB, TimingRule::kTimed), 32u);
  EXPECT_EQ(memory_at(32 * kKiB, TimingRule::kTimed), 128u);
  EXPECT_EQ(memory_at(1024 * kKiB, TimingRule::kTimed), 256u);
  EXPECT_EQ(memory_at(1024 * kKiB, TimingRule::kMaxOrder), 32u);
  EXPECT_EQ(memory_at(1024 * kKiB, TimingRule::kQueueDepth), 32u);
}

TEST(ReplayerTest, BuffersForReadsOfAllSlotsFillAQuarterOfTheMemoryAtMost) {
  constexpr uint64_t kMemory = 32u << 20;
  ReplayOptions options;
  options.rule = TimingRule::kQueueDepth;
  EXPECT_EQ(ChooseReadBufferBytes(options, 32, kMemory), 16384u);
  EXPECT_EQ(ChooseReadBufferBytes(options, 1000, kMemory), 8192u);  // 8 MiB / 1000 = 8388
  EXPECT_EQ(ChooseReadBufferBytes(options, 4096, kMemory), 0u);     // 2048: no whole page
  options.verify = true;
  EXPECT_EQ(ChooseReadBufferBytes(options, 32, kMemory), 0u);
  options = {};
  options.rule = TimingRule::kTimed;
  EXPECT_EQ(ChooseReadBufferBytes(options, 32, kMemory), 0u);
}

TEST(ReplayerTest, AtFullSpeedARequestThatNeedsAllTheMemoryAndOneBeyondItAreIssuedAmongSmallReads) {
  constexpr uint64_t kMiB = 1 << 20;
  ReplayOptions options;
  options.trace_path =
      TempTrace("wide.tape", {Read(10, 20), Write(30, 40, kMiB, kMiB), Read(50, 60),
                              Write(70, 80, 4 * kMiB, 2 * kMiB), Read(90, 100)});
  options.engine = "null";
  options.rule = TimingRule::kQueueDepth;
  options.queue_depth = 2;
  options.buffer_bytes = kMiB;
  const auto outcome = Replay(options);
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(outcome->completed(), 5);
}

TEST(ReplayerTest, SimulatedReplaysAreEqualToTheNanosecond) {
  std::vector<IoRecord> records;
  for (int i = 0; i < 5'000; ++i) {
    records.push_back(Io(i % 4 == 0 ? Op::kWrite : Op::kRead, i * 10'000,
                         i * 10'000 + 40'000 + i % 7 * 9'000, (i * 7919ull % 4096) * 4096, 4096));
  }
  ReplayOptions options;
  options.trace_path = TempTrace("twice.tape", records);
  options.engine = "simulated";
  options.rule = TimingRule::kMaxOrder;
  options.result_path = FreshPath("one.tape");
  ASSERT_TRUE(Replay(options).ok());
  const std::vector<IoRecord> one = ReadTrace(options.result_path).records;
  options.result_path = FreshPath("two.tape");
  ASSERT_TRUE(Replay(options).ok());
  EXPECT_THAT(one, SizeIs(5'000));
  EXPECT_EQ(one, ReadTrace(options.result_path).records);
}

TEST(ReplayerTest, TheNullEngineRunsThroughThreadsAndLosesNothing) {
  std::vector<IoRecord> records;
  for (int i = 0; i < 30'000; ++i) {
    records.push_back(Io(i % 2 == 0 ? Op::kWrite : Op::kRead, i * 100, i * 100 + 50,
                         (i * 7919ull % 65536) * 4096, 4096u << (i % 4)));
  }
  ReplayOptions options;
  options.trace_path = TempTrace("null.tape", records, 1, 10'000);
  options.engine = "null";
  options.result_path = FreshPath("null-result.tape");
  for (const TimingRule rule :
       {TimingRule::kTimed, TimingRule::kMaxOrder, TimingRule::kQueueDepth}) {
    options.rule = rule;
    options.queue_depth = 32;
    options.result_path = FreshPath("null-result.tape");
    const auto outcome = Replay(options);
    ASSERT_TRUE(outcome.ok()) << outcome.status().message();
    EXPECT_EQ(outcome->completed(), 30'000);
    EXPECT_GT(outcome->null_engine_ns(), 0);
    EXPECT_TRUE(outcome->has_stolen_ns());  // every kernel of today counts it
    const std::vector<IoRecord> result = ReadTrace(options.result_path).records;
    ASSERT_THAT(result, SizeIs(30'000));
    uint64_t different = 0;
    for (size_t i = 0; i < result.size(); ++i) {
      different += result[i].op == records[i].op && result[i].lba == records[i].lba &&
                           result[i].bytes == records[i].bytes && result[i].ordinal == i
                       ? 0
                       : 1;
    }
    EXPECT_EQ(different, 0u);
  }
}

// Of two I/Os that overlap and of which one changes data, the one later in the plan was issued when
// the earlier had completed.
uint64_t CountDisorder(const std::vector<IoRecord>& records, uint64_t* conflicts) {
  std::vector<size_t> by_place(records.size());
  std::iota(by_place.begin(), by_place.end(), size_t{0});
  std::ranges::sort(by_place, {}, [&](size_t i) { return records[i].lba->bytes(); });
  uint64_t disorder = 0;
  for (size_t first = 0; first < by_place.size(); ++first) {
    const IoRecord& low = records[by_place[first]];
    for (size_t second = first + 1; second < by_place.size(); ++second) {
      const IoRecord& high = records[by_place[second]];
      if (high.lba->bytes() >= low.lba->bytes() + low.bytes) break;
      if (low.op == Op::kRead && high.op == Op::kRead) continue;
      ++*conflicts;
      const auto [earlier, later] = std::minmax(by_place[first], by_place[second]);
      if (*records[earlier].complete_ns > *records[later].issue_ns) ++disorder;
    }
  }
  return disorder;
}

TEST(ReplayerTest, SeveralThreadsIssueEachIoOnceAndConflictingOnesInOrder) {
  std::vector<IoRecord> records;
  for (int i = 0; i < 6'000; ++i) {
    // Up to 256 KiB, over the boundaries of regions, on 16 MiB.
    records.push_back(Io(i % 2 == 0 ? Op::kWrite : Op::kRead, i * 1'000, i * 1'000 + 500,
                         (i * 7919ull % 4032) * 4096, 4096u << (i % 7)));
  }
  ReplayOptions options;
  options.trace_path = TempTrace("lanes.tape", records);
  options.engine = "null";
  options.threads = 3;
  options.queue_depth = 16;
  for (const TimingRule rule : {TimingRule::kTimed, TimingRule::kQueueDepth}) {
    options.rule = rule;
    options.result_path = FreshPath("lanes-result.tape");
    const auto outcome = Replay(options);
    ASSERT_TRUE(outcome.ok()) << outcome.status().message();
    EXPECT_EQ(outcome->completed(), 6'000);
    EXPECT_FALSE(outcome->stopped_early());
    const TraceContent result = ReadTrace(options.result_path);
    EXPECT_THAT(result.header.replay().rule(), HasSubstr("threads=3"));
    ASSERT_THAT(result.records, SizeIs(6'000));
    for (size_t i = 0; i < records.size(); ++i) {
      ASSERT_EQ(result.records[i].ordinal, i);
      ASSERT_EQ(result.records[i].op, records[i].op);
      ASSERT_EQ(result.records[i].lba, records[i].lba);
      ASSERT_EQ(result.records[i].bytes, records[i].bytes);
    }
    uint64_t conflicts = 0;
    EXPECT_EQ(CountDisorder(result.records, &conflicts), 0u);
    EXPECT_GT(conflicts, 10'000u);
  }
}

TEST(ReplayerTest, AllThreadsEndWhereTheDurationDoes) {
  std::vector<IoRecord> records;
  for (int64_t i = 0; i < 20'500; ++i) {
    records.push_back(Write(i * 100'000, i * 100'000 + 50, i % 2 * (64 << 10), 128 << 10));
  }
  ReplayOptions options;
  options.trace_path = TempTrace("lanes-duration.tape", records);
  options.engine = "null";
  options.threads = 2;
  int64_t completed = 0;
  // On a busy machine a thread may come too late for all that is due within the first.
  for (const int64_t duration_ns : {20'000'000, 200'000'000, 2'000'000'000}) {
    options.duration_ns = duration_ns;
    options.result_path = FreshPath("lanes-duration-result.tape");
    const auto outcome = Replay(options);
    ASSERT_TRUE(outcome.ok()) << outcome.status().message();
    EXPECT_FALSE(outcome->stopped_early());
    completed = static_cast<int64_t>(outcome->completed());
    EXPECT_LE(completed, duration_ns / 100'000 + 1) << "as many are due";
    const TraceContent result = ReadTrace(options.result_path);
    EXPECT_THAT(result.records, SizeIs(completed));
    for (const IoRecord& io : result.records) {
      EXPECT_LE(*io.queue_ns - *result.records.front().queue_ns, duration_ns);
    }
    if (completed > 0) break;
  }
  EXPECT_GT(completed, 0);
}

// However long each thread's own set-up takes: none of them has begun before all are ready.
TEST(ReplayerTest, AllThreadsCountFromOneStart) {
  std::vector<IoRecord> records;
  for (uint64_t i = 0; i < 8; ++i) records.push_back(Write(0, 50, i << 20, 4096));
  ReplayOptions options;
  options.trace_path = TempTrace("one-start.tape", records);
  options.engine = "null";
  options.threads = 4;
  options.result_path = FreshPath("one-start-result.tape");
  ASSERT_TRUE(Replay(options).ok());
  const TraceContent result = ReadTrace(options.result_path);
  ASSERT_THAT(result.records, SizeIs(8));
  for (const IoRecord& io : result.records) {
    EXPECT_EQ(*io.queue_ns, *result.records.front().queue_ns);
    EXPECT_GE(*io.issue_ns, *io.queue_ns);
  }
}

TEST(ReplayerTest, SeveralThreadsAreRefusedWhereOneAloneKeepsThePromise) {
  ReplayOptions options;
  options.trace_path = TempTrace("refused.tape", Session());
  options.engine = "null";
  options.threads = 2;
  options.rule = TimingRule::kMaxOrder;
  EXPECT_EQ(Replay(options).status().code(), StatusCode::kInvalidArgument);
  options.rule = TimingRule::kQueueDepth;
  options.queue_depth = 1;
  EXPECT_EQ(Replay(options).status().code(), StatusCode::kInvalidArgument);
  options.queue_depth = 2;
  EXPECT_TRUE(Replay(options).ok());
  options.keep_think_time = true;
  EXPECT_EQ(Replay(options).status().code(), StatusCode::kInvalidArgument);
  options.keep_think_time = false;
  options.threads = kMaxLanes + 1;
  options.queue_depth = 64;
  EXPECT_EQ(Replay(options).status().code(), StatusCode::kInvalidArgument);
}

TEST(ReplayerTest, AStoppedReplayLeavesAFinishedPartialResult) {
  ReplayOptions options;
  options.trace_path = TempTrace("hour.tape", {Read(0, 1), Read(3'600'000'000'000, {})});
  options.engine = "null";
  options.result_path = FreshPath("stopped.tape");
  std::atomic<bool> stop = false;
  const auto outcome = RunReplay(options, stop, [&stop](const ReplayProgress& progress) {
    if (progress.completed == 1) stop = true;
  });
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_TRUE(outcome->stopped_early());
  EXPECT_EQ(outcome->stop_reason(), "interrupted");
  const TraceContent result = ReadTrace(options.result_path);
  EXPECT_THAT(result.records, SizeIs(1));
  ASSERT_TRUE(result.summary.has_value()) << "finished";
  EXPECT_TRUE(result.summary->replay().stopped_early());
}

TEST(ReplayerTest, AGeneratedWorkloadRunsThroughTheSameReplayer) {
  ReplayOptions options;
  options.workload = WorkloadSpec{.read_share = 0.5, .span_bytes = 1 << 30, .count = 1'000};
  options.rule = TimingRule::kQueueDepth;
  options.queue_depth = 3;
  options.engine = "simulated";
  options.result_path = FreshPath("generated.tape");
  const auto outcome = Replay(options);
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(outcome->completed(), 1'000);
  EXPECT_EQ(ReadTrace(options.result_path).header.replay().rule(), "max qd=3");
}

TEST(ReplayerTest, TheOutcomeCountsWhatWasSkippedAndWhatTheIdleCapCut) {
  ReplayOptions options;
  options.trace_path = TempTrace("skip.tape", Session());
  options.engine = "simulated";
  options.skip_writes = true;
  options.idle_cap_ns = 100'000;
  const auto outcome = Replay(options);
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(outcome->issued(), 3);
  EXPECT_THAT(outcome->skipped(), ElementsAre(Pair("skip-writes", 1)));
  // Idle from 400,000 to 1,000,000.
  EXPECT_EQ(outcome->idle_cut_ns(), 500'000);
}

TEST(ReplayerTest, ATargetTooSmallIsRefusedBeforeOneByteChanges) {
  const std::string target = FreshPath("small.img");
  std::ofstream(target) << std::string(1 << 20, 'x');
  ReplayOptions options;
  options.trace_path = TempTrace("large.tape", {Write(0, 10), Write(10, 20, 1 << 20, 4096)});
  options.mappings = {{"", target}};
  options.overwrite = true;
  const auto outcome = Replay(options);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(outcome.status().message(), HasSubstr("too small"));
  EXPECT_THAT(outcome.status().message(), HasSubstr("1052672 bytes"));
  std::stringstream content;
  content << std::ifstream(target).rdbuf();
  EXPECT_EQ(content.str(), std::string(1 << 20, 'x'));
}

TEST(ReplayerTest, AScoreOnATargetTooSmallIsNotAdvisedWhatYieldsNone) {
  const std::string target = FreshPath("small-scored.img");
  std::ofstream(target) << std::string(1 << 20, 'x');
  ReplayOptions options;
  options.trace_path = TempTrace("scored.tape", {Write(0, 10), Write(10, 20, 1 << 20, 4096)});
  options.mappings = {{"", target}};
  options.overwrite = true;
  EXPECT_THAT(Replay(options).status().message(), HasSubstr("--remap"));
  options.scored = true;
  const auto refused = Replay(options);
  EXPECT_THAT(refused.status().message(), HasSubstr("too small"));
  EXPECT_THAT(refused.status().message(), HasSubstr("--create"));
  EXPECT_THAT(refused.status().message(), Not(HasSubstr("--remap")));
}

// The path of a PCI Express drive, a disk behind USB or a network, or a file, in sysfs.
class TargetOfFolder : public Target {
 public:
  explicit TargetOfFolder(std::string folder) : folder_(std::move(folder)) {}
  int fd() const override { return -1; }
  const std::string& path() const override { return folder_; }
  uint64_t size_bytes() const override { return 0; }
  uint32_t logical_block_bytes() const override { return 512; }
  bool is_block_device() const override { return true; }
  const std::string& identity() const override { return folder_; }
  bool direct() const override { return true; }
  const TargetAbilities& abilities() const override { return abilities_; }
  const proto::Device& description() const override { return description_; }
  std::optional<uint64_t> StatSectors() const override { return std::nullopt; }
  const std::string& disk() const override { return folder_; }

 private:
  const std::string folder_;
  const TargetAbilities abilities_;
  const proto::Device description_;
};

TEST(ChoosePollTest, ItIsLongWhereCpusAreFreeAndTheDriveInterrupts) {
  constexpr int64_t kUs = 1'000;
  const std::string nvme = "/sys/devices/pci0000:00/0000:00:1d.0/nvme/nvme0/nvme0n1";
  const std::string usb = "/sys/devices/pci0000:00/0000:00:14.0/usb2/2-1/host6/block/sdb";
  const std::string tcp = "/sys/devices/virtual/nvme-fabrics/ctl/nvme1/nvme1n1";
  const auto poll_ns = [](const std::vector<std::string>& folders, uint32_t cpus,
                          const ReplayOptions& options = {}) {
    std::vector<std::unique_ptr<Target>> targets;
    for (const std::string& one : folders) targets.push_back(std::make_unique<TargetOfFolder>(one));
    return ChoosePollNs(options, targets, cpus);
  };
  EXPECT_EQ(poll_ns({nvme}, 4), 2'000 * kUs);
  EXPECT_EQ(poll_ns({nvme}, 2), 100 * kUs) << "the other CPU is for those who feed the thread";
  EXPECT_EQ(poll_ns({nvme}, 1), 0);
  EXPECT_EQ(poll_ns({nvme, usb}, 4), 100 * kUs);
  EXPECT_EQ(poll_ns({tcp}, 4), 100 * kUs);
  EXPECT_EQ(poll_ns({""}, 4), 100 * kUs) << "a file";
  ReplayOptions deep;
  deep.rule = TimingRule::kQueueDepth;
  deep.queue_depth = 32;
  EXPECT_EQ(poll_ns({nvme}, 4, deep), 0);
}

TEST(ReplayerTest, ARequestLargerThanTheTargetIsRefusedThoughAddressesAreWrapped) {
  const std::string target = FreshPath("wrapped.img");
  std::ofstream(target) << std::string(1 << 20, 'x');
  ReplayOptions options;
  options.trace_path = TempTrace("longest.tape", {Write(0, 10), Write(10, 20, 0, (1 << 20) + 512)});
  options.mappings = {{"", target}};
  options.overwrite = true;
  options.remap = "wrap";
  const auto refused = Replay(options);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().message(), HasSubstr("too small: the trace has a request of"));
  std::stringstream content;
  content << std::ifstream(target).rdbuf();
  EXPECT_EQ(content.str(), std::string(1 << 20, 'x'));
  // The extent is larger than the target, each request is not.
  options.trace_path = TempTrace("wide.tape", {Write(0, 10), Write(10, 20, 8 << 20, 1 << 20)});
  options.result_path = FreshPath("wrapped.tape");
  const auto wrapped = Replay(options);
  ASSERT_TRUE(wrapped.ok()) << wrapped.status().message();
  EXPECT_EQ(wrapped->completed(), 2);
  EXPECT_FALSE(wrapped->stopped_early());
}

TEST(ReplayerTest, OptionsThatContradictEachOtherAreNamed) {
  ReplayOptions options;
  EXPECT_THAT(Replay(options).status().message(), HasSubstr("a trace or a workload"));
  options.trace_path = TempTrace("options.tape", Session());
  EXPECT_THAT(Replay(options).status().message(), HasSubstr("--target"));
  options.engine = "simulated";
  options.keep_think_time = true;
  EXPECT_THAT(Replay(options).status().message(), HasSubstr("maximum speed"));
  options.keep_think_time = false;
  options.rule = TimingRule::kQueueDepth;
  EXPECT_THAT(Replay(options).status().message(), HasSubstr("queue depth"));
  options.rule = TimingRule::kTimed;
  options.mappings = {{"nvme7n1", "/dev/null"}};
  EXPECT_THAT(Replay(options).status().message(), HasSubstr("no device \"nvme7n1\""));
}

TEST(ReplayerTest, MaxOrderNeedsATraceThatSaysWhenIosCompleted) {
  ReplayOptions options;
  options.trace_path = TempTrace("no-completions.tape", {Read(0, {}), Read(10, {})});
  options.engine = "simulated";
  options.rule = TimingRule::kMaxOrder;
  EXPECT_THAT(Replay(options).status().message(), HasSubstr("--queue-depth"));
  options.rule = TimingRule::kClosed;
  EXPECT_THAT(Replay(options).status().message(), HasSubstr("what each one waited for"));
}

TEST(ReplayerTest, AClosedReplayNamesItsRuleAndCapsItsThinkTime) {
  ReplayOptions options;
  // 900 ns of thinking between them, and another 10 us.
  options.trace_path = TempTrace(
      "closed.tape", {Read(0, 100), Read(1'000, 1'100, 4096), Read(11'100, 11'200, 8192)});
  options.engine = "simulated";
  options.rule = TimingRule::kClosed;
  options.result_path = FreshPath("closed-result.tape");
  ASSERT_TRUE(Replay(options).ok());
  const TraceContent whole = ReadTrace(options.result_path);
  EXPECT_EQ(whole.header.replay().rule(), "closed");
  EXPECT_EQ(*whole.records[1].queue_ns - *whole.records[0].complete_ns, 900);
  EXPECT_EQ(*whole.records[2].queue_ns - *whole.records[1].complete_ns, 10'000);

  options.idle_cap_ns = 5'000;
  options.speed = 2;
  options.result_path = FreshPath("closed-capped.tape");
  ASSERT_TRUE(Replay(options).ok());
  const TraceContent capped = ReadTrace(options.result_path);
  EXPECT_EQ(capped.header.replay().rule(), "closed x2 idle-cap 5us");
  EXPECT_EQ(*capped.records[1].queue_ns - *capped.records[0].complete_ns, 450);
  EXPECT_EQ(*capped.records[2].queue_ns - *capped.records[1].complete_ns, 2'500);
}

TEST(ReplayerTest, APreviewTellsWhatWouldRun) {
  ReplayOptions options;
  options.trace_path = TempTrace("preview.tape", Session());
  options.engine = "simulated";
  options.skip_writes = true;
  options.speed = 2;
  const auto preview = PreviewReplay(options, /*whole=*/true, kRunOn);
  ASSERT_TRUE(preview.ok()) << preview.status().message();
  EXPECT_EQ(preview->rule, "timed x2");
  EXPECT_EQ(preview->planned, 3u);
  EXPECT_EQ(preview->planned_bytes, 4096u + 65536u);
  EXPECT_THAT(preview->planned_by_op, ElementsAre(Pair("flush", 1), Pair("read", 2)));
  EXPECT_THAT(preview->skipped, ElementsAre(Pair("skip-writes", 1)));
  EXPECT_EQ(preview->duration_ns, 999'000 / 2);
}

}  // namespace
}  // namespace blktape
