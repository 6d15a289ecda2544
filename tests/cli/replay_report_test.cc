#include "cli/replay_report.h"

#include <nlohmann/json.hpp>

#include "analysis/profile.h"
#include "format/trace.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

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

TEST(ReplayReportTest, CompletionsSeenLateAreSaid) {
  const Profile profile;
  proto::ReplayOutcome outcome;
  EXPECT_THAT(ReplayText(profile, outcome), Not(HasSubstr("the host stopped")));
  outcome.set_stalled_completions(1);
  EXPECT_THAT(ReplayText(profile, outcome), HasSubstr("the host stopped while 1 I/O was out"));
}

}  // namespace
}  // namespace blktape
