#include "bench/corners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "bench/corners_report.h"
#include "replay/replay_options.h"

namespace blktape {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr uint64_t kGiB = uint64_t{1} << 30;

CornerOptions Simulated(std::vector<std::string> groups) {
  CornerOptions options;
  options.replay.engine = "simulated";
  options.target_bytes = 4 * kGiB;
  options.groups = std::move(groups);
  options.quick = true;
  return options;
}

std::vector<CornerResult> RunAll(const CornerOptions& options) {
  Result<std::vector<CornerGroup>> groups = PlanCorners(options);
  EXPECT_TRUE(groups.ok()) << groups.status().message();
  // What a simulated drive shows it shows in a tenth of a second.
  for (CornerGroup& group : *groups) {
    for (CornerStep& step : group.steps) {
      if (step.duration_ns) *step.duration_ns = std::min<int64_t>(*step.duration_ns, 100'000'000);
    }
  }
  std::vector<CornerResult> results;
  const std::atomic<bool> stop = false;
  const Status ran = RunCorners(options, *groups, stop, {}, &results);
  EXPECT_TRUE(ran.ok()) << ran.message();
  return results;
}

// The reference drive of docs/score.md: a read takes 80,000 ns and 0.5 ns a byte, a write 25,000 ns
// and 1 ns a byte, when nothing else is in flight.
TEST(CornersTest, SequentialAtDepthOneIsTheModelsServiceTime) {
  const std::vector<CornerResult> results = RunAll(Simulated({"sequential"}));
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].writes, results[0].service_ns.count());
  EXPECT_EQ(results[0].service_ns.min_ns(), 25'000 + 131'072);
  EXPECT_EQ(results[0].service_ns.max_ns(), 25'000 + 131'072);
  EXPECT_EQ(results[1].service_ns.mean_ns(), 80'000 + 65'536);
  EXPECT_NEAR(*results[1].bytes_per_second(), 131'072 / 145'536e-9, 1e4);
}

// The reference drive reads faster than it writes, by either's time a block: it would get further.
TEST(CornersTest, NoReadOfAStreamGoesBeyondWhatWasWritten) {
  for (const char* group : {"sequential", "compressible"}) {
    const std::vector<CornerResult> results = RunAll(Simulated({group}));
    for (size_t i = 0; i + 1 < results.size(); i += 2) {
      EXPECT_GT(results[i].writes, 0u);
      EXPECT_GT(results[i + 1].reads, 0u);
      EXPECT_LE(results[i + 1].reads, results[i].writes) << results[i + 1].step.name;
    }
  }
  const Result<std::vector<CornerGroup>> state = PlanCorners(Simulated({"state"}));
  ASSERT_TRUE(state.ok());
  bool filled = false;
  for (const CornerStep& step : state->front().steps) {
    if (step.kind == CornerStep::Kind::kDiscard) filled = false;
    const bool fills = step.kind == CornerStep::Kind::kFill || step.kind == CornerStep::Kind::kUse;
    filled |= fills && step.workload.span_bytes >= kGiB;
    if (step.workload.read_share > 0 && step.kind == CornerStep::Kind::kMeasure) {
      EXPECT_TRUE(filled) << step.name;
      EXPECT_LE(step.workload.span_bytes, kGiB);
    }
  }
}

// Else a cache would know the addresses of the test before.
TEST(CornersTest, NoTwoTestsDrawTheSameAddresses) {
  const Result<std::vector<CornerGroup>> groups = PlanCorners(Simulated({}));
  ASSERT_TRUE(groups.ok());
  std::set<uint64_t> seeds;
  for (const CornerGroup& group : *groups) {
    for (const CornerStep& step : group.steps) {
      EXPECT_TRUE(seeds.insert(step.workload.seed).second) << step.name;
    }
  }
  // A group by itself draws what it draws among all.
  const Result<std::vector<CornerGroup>> alone = PlanCorners(Simulated({"depth"}));
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(alone->front().steps[1].workload.seed, (*groups)[1].steps[1].workload.seed);
}

// Eight channels, each 80 us a read: 100,000 a second once at least eight are in flight.
TEST(CornersTest, DepthShowsTheChannels) {
  const std::vector<CornerResult> results = RunAll(Simulated({"depth"}));
  ASSERT_EQ(results.size(), 16u) << "read and write at QD 1 to 128";
  for (const CornerResult& result : results) {
    if (result.writes > 0) continue;
    const double channels = std::min(result.step.queue_depth, 8u);
    EXPECT_NEAR(*result.iops(), channels / 82'048e-9, 0.03 * channels / 82'048e-9)
        << result.step.name;
  }
}

TEST(CornersTest, SeriesHoldsEveryByteOnce) {
  for (const CornerResult& result : RunAll(Simulated({"random", "torture"}))) {
    uint64_t bytes = 0;
    uint64_t ios = 0;
    for (const uint64_t step : result.series_bytes) bytes += step;
    for (const uint64_t step : result.series_ios) ios += step;
    EXPECT_EQ(bytes, result.bytes) << result.step.name;
    EXPECT_EQ(ios, result.reads + result.writes) << result.step.name;
    EXPECT_LE(result.series_ios.size(), 4096u);
  }
}

TEST(CornersTest, TheClassicParametersWithoutQuick) {
  CornerOptions options = Simulated({"random"});
  options.quick = false;
  options.target_bytes = 64 * kGiB;
  const Result<std::vector<CornerGroup>> groups = PlanCorners(options);
  ASSERT_TRUE(groups.ok());
  std::vector<std::string> names;
  for (const CornerStep& step : groups->front().steps) names.push_back(step.name);
  EXPECT_THAT(names, testing::ElementsAre(
                         "write 8 GiB first",
                         "4 KiB random write, QD 3, span 8 GiB, repeated byte, 3 min 00 s",
                         "4 KiB random write, QD 3, span 8 GiB, pseudo-random data, 3 min 00 s",
                         "4 KiB random write, QD 3, span 8 GiB, random data, 3 min 00 s",
                         "4 KiB random write, QD 3, span 8 GiB, 512 B aligned, repeated byte, "
                         "3 min 00 s",
                         "4 KiB random write, QD 3, span 8 GiB, 512 B aligned, pseudo-random data, "
                         "3 min 00 s",
                         "4 KiB random write, QD 3, span 8 GiB, 512 B aligned, random data, "
                         "3 min 00 s",
                         "4 KiB random read, QD 3, span 8 GiB, 3 min 00 s",
                         "4 KiB random read, QD 3, span 8 GiB, 512 B aligned, 3 min 00 s",
                         "4 KiB random write, QD 32, span 8 GiB, 3 min 00 s"));
}

TEST(CornersTest, SpansFitASmallTarget) {
  CornerOptions options = Simulated({});
  options.target_bytes = 3 * 1024 * 1024 + 4096;
  const Result<std::vector<CornerGroup>> groups = PlanCorners(options);
  ASSERT_TRUE(groups.ok());
  for (const CornerGroup& group : *groups) {
    for (const CornerStep& step : group.steps) {
      EXPECT_LE(step.workload.begin_bytes + step.workload.span_bytes, options.target_bytes)
          << step.name;
    }
  }
}

TEST(CornersTest, BlocksOf4KiBHaveNoUnalignedTest) {
  CornerOptions options = Simulated({"random"});
  options.block_bytes = 4096;
  const Result<std::vector<CornerGroup>> groups = PlanCorners(options);
  ASSERT_TRUE(groups.ok());
  EXPECT_EQ(groups->front().steps.size(), 1u + 3u + 1u + 1u);
  EXPECT_THAT(groups->front().left_out, testing::ElementsAre(HasSubstr("512 B aligned")));
}

TEST(CornersTest, AnUnknownGroupAndATinyTargetAreRefused) {
  const Result<std::vector<CornerGroup>> unknown = PlanCorners(Simulated({"randon"}));
  EXPECT_THAT(unknown.status().message(), HasSubstr("\"randon\""));
  CornerOptions tiny = Simulated({});
  tiny.target_bytes = 4096;
  EXPECT_EQ(PlanCorners(tiny).status().code(), StatusCode::kInvalidArgument);
}

TEST(CornersTest, CostIsTheSumOfTheTimes) {
  const Result<std::vector<CornerGroup>> groups = PlanCorners(Simulated({"sequential", "random"}));
  ASSERT_TRUE(groups.ok());
  const CornerCost cost = CostOf(*groups);
  EXPECT_EQ(cost.measured_ns, (9 + 2) * 5'000'000'000);
  EXPECT_EQ(cost.written_bytes, kGiB);
}

TEST(CornersReportTest, LinesFitTheTerminal) {
  CornersReport report;
  report.quick = true;
  report.results = RunAll(Simulated({}));
  for (const size_t columns : {79u, 60u, 39u}) {
    const std::string text = CornersText(report, columns);
    size_t begin = 0;
    while (begin < text.size()) {
      const size_t end = text.find('\n', begin);
      EXPECT_LE(end - begin, columns) << text.substr(begin, end - begin);
      begin = end + 1;
    }
    EXPECT_THAT(text, HasSubstr("QUICK"));
  }
}

CornersReport WithWrites(uint64_t repeated, uint64_t random) {
  CornersReport report;
  for (const bool repeat : {true, false}) {
    CornerResult result;
    result.group = "random";
    result.step.queue_depth = 3;
    result.step.workload.read_share = 0;
    result.step.payload.repeat = repeat;
    result.writes = repeat ? repeated : random;
    result.elapsed_ns = 1'000'000'000;
    report.results.push_back(std::move(result));
  }
  return report;
}

TEST(CornersReportTest, SaysThatADriveCompresses) {
  EXPECT_THAT(CornersText(WithWrites(3000, 1500)), HasSubstr("2.00 times as fast"));
  EXPECT_THAT(CornersText(WithWrites(1550, 1500)), Not(HasSubstr("times as fast")));
}

}  // namespace
}  // namespace blktape
