#include "cli/replay_report.h"

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

}  // namespace
}  // namespace blktape
