#include "cli/replay_report.h"

#include "analysis/profile.h"
#include "base/json.h"
#include "format/trace.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "replay/plan/timing_rule.h"
#include "replay/replay_options.h"
#include "replay/replayer.h"

namespace blktape {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ReplayReportTest, StalledSubmissionsAreShownWhereThereAreAny) {
  const Profile profile;
  proto::ReplayOutcome outcome;
  EXPECT_THAT(ReplayText(profile, outcome), Not(HasSubstr("submission")));
  outcome.set_stalled_submissions(1);
  EXPECT_THAT(ReplayText(profile, outcome), HasSubstr("the submission of 1 I/O took over 100 us"));
  outcome.set_stalled_submissions(1'200);
  EXPECT_THAT(ReplayText(profile, outcome), HasSubstr("submission of 1,200 I/Os took over 100 us"));
}

TEST(ReplayReportTest, TheWakeUpStandsBesideTheServiceTimeItIsIn) {
  const Profile profile;
  proto::ReplayOutcome outcome;
  outcome.set_completed(2'000);
  EXPECT_THAT(ReplayText(profile, outcome), Not(HasSubstr("wake-up")));
  outcome.set_woken_completions(1'500);
  outcome.set_wake_ups(10);
  outcome.set_wake_up_p50_ns(12'300);
  const std::string text = ReplayText(profile, outcome);
  EXPECT_THAT(text, HasSubstr("1,500 of 2,000 I/Os"));
  EXPECT_THAT(text, HasSubstr("12.3 us (median)"));
  const auto json = ReplayJson(profile, outcome);
  EXPECT_EQ(json["completions"]["woken"], 1'500);
  EXPECT_EQ(json["completions"]["wake_up_ns"]["p50"], 12'300);
  EXPECT_TRUE(json["completions"]["wake_up_ns"]["p99"].is_null());
}

// A recording of ten minutes.
TEST(ReplayReportTest, HowLongItWillTakeIsSaidWithItsBasis) {
  ReplayOptions options;
  ReplayPreview preview;
  preview.recorded_ns = 600'000'000'000;
  EXPECT_EQ(ExpectedTimeText(options, preview), "takes 10 min 00 s (the recording)");
  options.speed = 4;
  EXPECT_EQ(ExpectedTimeText(options, preview), "takes 2 min 30 s (the recording at x4)");
  options.idle_cap_ns = 25'000'000;
  EXPECT_EQ(ExpectedTimeText(options, preview),
            "takes at most 2 min 30 s (the recording at x4, less idle time)");
  options.idle_cap_ns.reset();
  options.rule = TimingRule::kClosed;
  EXPECT_EQ(ExpectedTimeText(options, preview),
            "takes some 2 min 30 s on a drive as fast as the recorded one (the recording at x4)");
  options.speed = 1;
  options.rule = TimingRule::kMaxOrder;
  EXPECT_EQ(ExpectedTimeText(options, preview),
            "takes at most 10 min 00 s on a drive as fast as the recorded one (the recording)");
  options.rule = TimingRule::kQueueDepth;
  EXPECT_EQ(ExpectedTimeText(options, preview),
            "takes as long as the drive needs; the recording took 10 min 00 s");
  options.duration_ns = 150'000'000'000;
  EXPECT_EQ(ExpectedTimeText(options, preview), "takes at most 2 min 30 s");
  options.loops = 0;
  preview.recorded_ns.reset();
  EXPECT_EQ(ExpectedTimeText(options, preview), "takes 2 min 30 s");
  options.duration_ns.reset();
  EXPECT_EQ(ExpectedTimeText(options, preview), "runs until it is stopped");
  options.engine = "simulated";
  EXPECT_EQ(ExpectedTimeText(options, preview), "");
}

TEST(ReplayReportTest, CompletionsSeenLateAreSaid) {
  const Profile profile;
  proto::ReplayOutcome outcome;
  EXPECT_THAT(ReplayText(profile, outcome), Not(HasSubstr("the host stopped")));
  outcome.set_stalled_completions(1);
  EXPECT_THAT(ReplayText(profile, outcome),
              HasSubstr("the host stalled while 1 I/O was in flight"));
}

// A result's profile on one target.
Profile On(const proto::Device& device) {
  Profile profile;
  *profile.header.mutable_replay()->add_targets() = device;
  profile.by_op[static_cast<size_t>(Op::kRead)].ios = 1;
  return profile;
}

TEST(ReplayReportTest, AQueueSetToWriteThroughOverACacheIsSaid) {
  proto::Device drive;
  drive.set_path("/dev/sdb");
  drive.set_write_cache("write through");
  EXPECT_THAT(ReplayText(On(drive), {}), Not(HasSubstr("no flush reaches")));
  drive.set_drive_write_cache("write back");
  EXPECT_THAT(ReplayText(On(drive), {}), HasSubstr("no flush reaches"));
  ReplayPreview preview;
  preview.targets = {drive};
  EXPECT_THAT(PreviewText(preview), HasSubstr("no flush reaches"));
  drive.set_drive_write_cache("write through");
  EXPECT_THAT(ReplayText(On(drive), {}), Not(HasSubstr("no flush reaches")));
}

TEST(ReplayReportTest, BlocksThatWereNeverWrittenAreSaidOfAnyTarget) {
  proto::Device file;
  file.set_path("scratch.img");
  file.set_is_file(true);
  EXPECT_THAT(ReplayText(On(file), {}), Not(HasSubstr("look too fast")));
  file.set_unwritten_bytes(3 << 20);
  EXPECT_THAT(ReplayText(On(file), {}), HasSubstr("3 MiB of scratch.img were unwritten"));
  EXPECT_EQ(ReplayJson(On(file), {})["targets"][0]["unwritten_bytes"], 3 << 20);
  proto::Device drive;
  drive.set_path("/dev/sdb");
  Profile profile = On(drive);
  EXPECT_THAT(ReplayText(profile, {}), HasSubstr("which blocks of /dev/sdb were never written"));
  EXPECT_TRUE(ReplayJson(profile, {})["targets"][0]["unwritten_bytes"].is_null());
  profile.header.mutable_replay()->set_state("used");
  EXPECT_THAT(ReplayText(profile, {}), Not(HasSubstr("look too fast")));
}

TEST(ReplayReportTest, LinkTemperatureAndThrottlingAreShown) {
  proto::Device drive;
  drive.set_path("/dev/nvme0n1");
  drive.set_link_speed("8.0 GT/s PCIe");
  drive.set_link_width(2);
  drive.set_link_speed_max("16.0 GT/s PCIe");
  drive.set_link_width_max(4);
  proto::ReplayOutcome outcome;
  proto::DriveCondition* const condition = outcome.add_conditions();
  condition->set_temperature_before(40'850);
  condition->set_temperature_after(84'000);
  condition->set_temperature_limit(83'000);
  const std::string text = ReplayText(On(drive), outcome);
  EXPECT_THAT(text, HasSubstr("8.0 GT/s PCIe x2 (of 16.0 GT/s PCIe x4)"));
  EXPECT_THAT(text, HasSubstr("41 C before, 84 C after"));
  EXPECT_THAT(text, HasSubstr("the drive is too hot: 84 C, and its limit is 83 C"));
  condition->set_throttles(1);
  condition->set_throttled_s(20);
  EXPECT_THAT(ReplayText(On(drive), outcome),
              HasSubstr("the drive throttled because of its temperature: 1 time, 20 s"));
  const auto json = ReplayJson(On(drive), outcome);
  EXPECT_EQ(json["targets"][0]["link"]["width"], 2);
  EXPECT_EQ(json["conditions"][0]["celsius_before"], 40.85);
  EXPECT_EQ(json["conditions"][0]["throttles"], 1);
}

}  // namespace
}  // namespace blktape
