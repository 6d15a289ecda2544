// Whole benches of drives whose speed is known: the ratios are those of the closed form, and two
// names of one drive tie.
#include <atomic>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "analysis/drive_comparison.h"
#include "analysis/measured_score.h"
#include "analysis/score.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "bench/bench.h"
#include "bench/campaign.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "format/trace_writer.h"
#include "gtest/gtest.h"
#include "replay/prepare/prepare.h"
#include "replay/replayer.h"
#include "report/score_report_out.h"

namespace blktape {
namespace {

constexpr uint64_t kGroups = 400;

// Does nothing: pauses before runs are no part of it.
class StillClock : public Clock {
 public:
  int64_t NowNs() override { return 0; }
  void SleepUntilNs(int64_t) override {}
};

class KnownSpeedTest : public ::testing::Test {
 protected:
  KnownSpeedTest() {
    folder_ = ::testing::TempDir() + "/" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    WriteRecording();
  }

  // One after the other, 1 ms apart: a read, a sync write and a flush, over and over.
  static std::vector<IoRecord> Records() {
    std::vector<IoRecord> records;
    for (uint64_t i = 0; i < 3 * kGroups; ++i) {
      IoRecord io;
      io.op = i % 3 == 0 ? Op::kRead : i % 3 == 1 ? Op::kWrite : Op::kFlush;
      io.flags = io.op == Op::kWrite ? kFlagSync : 0;
      io.lba = Lba(io.op == Op::kFlush ? 0 : i * 8);
      io.bytes = io.op == Op::kFlush ? 0 : 4096;
      io.queue_ns = io.issue_ns = static_cast<int64_t>(i) * 1'000'000;
      io.complete_ns = *io.issue_ns + 100'000;
      records.push_back(io);
    }
    return records;
  }

  void WriteRecording() {
    proto::Header header;
    header.add_devices()->set_name("sda");
    const auto writer = TraceWriter::Create(folder_ + "/day.tape", header);
    ASSERT_TRUE(writer.ok());
    for (const IoRecord& io : Records()) ASSERT_TRUE((*writer)->Write(io).ok());
    ASSERT_TRUE((*writer)->Finish(proto::Summary()).ok());
  }

  DriveComparison Bench(const std::string& name, const std::vector<std::string>& targets,
                        const ReplayFunction& replay) {
    BenchOptions options;
    options.traces = {
        {.trace_path = folder_ + "/day.tape", .device = {}, .from_ns = {}, .to_ns = {}}};
    options.targets = targets;
    options.folder = folder_ + "/" + name;
    options.campaign.state = "as-is";
    StillClock clock;
    const CampaignTools tools{.replay = replay, .prepare = RunPrepare, .clock = &clock};
    const std::atomic<bool> stop{false};
    const auto results =
        RunBench(options, tools, stop, [](const CampaignOptions&) { return CampaignEvents(); });
    EXPECT_TRUE(results.ok()) << results.status().message();
    std::vector<ComparedDrive> drives;
    for (const BenchResult& result : *results) {
      EXPECT_TRUE(result.status.ok()) << result.status.message();
      Result<MeasuredScore> score = ParseMeasuredScore(JsonText(ScoreJson(result.report)));
      EXPECT_TRUE(score.ok()) << score.status().message();
      EXPECT_TRUE(score->valid);
      drives.push_back({result.target, result.folder, *std::move(score)});
    }
    std::filesystem::remove_all(options.folder);
    return CompareDrives(std::move(drives));
  }

  std::string folder_;
};

TEST_F(KnownSpeedTest, RatiosOfSimulatedDrivesAreThoseOfTheClosedForm) {
  // By the rules of drive_model.h, ns: a read takes its base and 4096 B by the bandwidth, a write
  // likewise, a flush its base and the 4096 B that were written. Both runs are these, one by one.
  constexpr double kReference = (80'000 + 2'048) + (25'000 + 4'096) + (500'000 + 2'048);
  constexpr double kNvme = (45'000 + 682) + (12'000 + 1'024) + (250'000 + 1'024);
  constexpr double kSata = (140'000 + 15'753) + (70'000 + 20'480) + (3'000'000 + 20'480);
  constexpr double kEmmc = (180'000 + 14'628) + (250'000 + 34'133) + (1'200'000 + 27'306);
  const DriveComparison all = Bench(
      "closed", {"sim:reference", "sim:nvme-2026", "sim:sata-2011", "sim:emmc-2018"}, RunReplay);
  const std::vector<double> costs = {kReference, kNvme, kSata, kEmmc};
  for (size_t i = 0; i < costs.size(); ++i) {
    EXPECT_NEAR(*all.drives[i].score.score / (1000 * kReference / costs[i]), 1, 0.01);
    EXPECT_NEAR(*all.drives[i].score.storage_wait_ns / (kGroups * costs[i]), 1, 0.01);
  }
  ASSERT_EQ(all.pairs.size(), 6u);
  for (const DrivePair& pair : all.pairs) {
    EXPECT_EQ(pair.comparison.verdict, Verdict::kFirstFaster);
    EXPECT_NEAR(pair.comparison.ratio / (costs[pair.second] / costs[pair.first]), 1, 0.01);
  }
}

// A drive on which each run is off by chance, as real ones are: the logarithm of its service times
// has the standard deviation `sd`.
class NoisyDrive {
 public:
  explicit NoisyDrive(double sd) : spread_(0, sd) {}

  Result<proto::ReplayOutcome> Replay(const ReplayOptions& options,
                                      const std::vector<IoRecord>& records) {
    const bool max = options.rule == TimingRule::kMaxOrder;
    const bool simulated = options.cycle == 0;
    const double factor = simulated ? 1 : std::exp(spread_(random_));
    proto::Header header;
    header.add_devices()->set_name("target");
    header.mutable_replay()->set_rule(max ? "max order" : "closed");
    header.mutable_replay()->set_engine(simulated ? "simulated" : "io_uring");
    header.mutable_replay()->add_targets()->set_path("/dev/sdx");
    ASSIGN_OR_RETURN(const auto writer, TraceWriter::Create(options.result_path, header));
    int64_t now_ns = 0;
    for (uint64_t i = 0; i < records.size(); ++i) {
      IoRecord io = records[i];
      if (max) io.queue_ns = io.issue_ns = now_ns;
      io.backlog_ns = 0;
      io.complete_ns = *io.issue_ns + static_cast<int64_t>(200'000 * factor);
      now_ns = *io.complete_ns;
      io.ordinal = i;
      RETURN_IF_ERROR(writer->Write(io));
    }
    proto::Summary summary;
    proto::ReplayOutcome* outcome = summary.mutable_replay();
    outcome->set_planned(records.size());
    outcome->set_issued(records.size());
    outcome->set_completed(records.size());
    outcome->set_wall_ns(now_ns);
    outcome->set_timed_ios(records.size());
    RETURN_IF_ERROR(writer->Finish(summary));
    return *outcome;
  }

 private:
  std::mt19937_64 random_{1};
  std::normal_distribution<double> spread_;
};

TEST_F(KnownSpeedTest, TwoNamesOfOneDriveTieInNineteenOfTwentyCampaigns) {
  NoisyDrive drive(0.04);
  const std::vector<IoRecord> records = Records();
  // Runs on targets come one at a time; those of the references do not.
  std::mutex mutex;
  const ReplayFunction replay = [&](const ReplayOptions& options, const std::atomic<bool>&,
                                    const std::function<void(const ReplayProgress&)>&) {
    const std::lock_guard lock(mutex);
    return drive.Replay(options, records);
  };
  int ties = 0;
  for (int campaign = 0; campaign < 20; ++campaign) {
    const DriveComparison all =
        Bench(std::to_string(campaign), {"/dev/sdx", "/dev/disk/by-id/sdx"}, replay);
    ASSERT_EQ(all.pairs.size(), 1u);
    EXPECT_EQ(all.pairs[0].obstacle, Obstacle::kNone);
    ties += all.pairs[0].comparison.verdict == Verdict::kTie ? 1 : 0;
  }
  EXPECT_GE(ties, 19);
}

}  // namespace
}  // namespace blktape
