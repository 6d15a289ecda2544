#include "cli/progress_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/units.h"
#include "bench/campaign.h"
#include "cli/replay_report.h"
#include "cli/score_flags.h"
#include "replay/replayer.h"

namespace blktape {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Standard error on a terminal of 40 columns.
class Terminal {
 public:
  explicit Terminal(const char* term) : saved_(dup(STDERR_FILENO)) {
    winsize size{.ws_row = 24, .ws_col = 40, .ws_xpixel = 0, .ws_ypixel = 0};
    int theirs = -1;
    EXPECT_EQ(openpty(&ours_, &theirs, nullptr, nullptr, &size), 0);
    setenv("TERM", term, /*overwrite=*/1);
    dup2(theirs, STDERR_FILENO);
    close(theirs);
  }
  ~Terminal() {
    dup2(saved_, STDERR_FILENO);
    close(saved_);
    close(ours_);
  }
  // What came since the last time, up to `end`; or, if that does not come, what came instead. A
  // terminal may hand on what was written in parts.
  std::string ReadTo(std::string_view end) {
    constexpr int kPatienceMs = 10'000;
    std::string shown;
    pollfd ready{.fd = ours_, .events = POLLIN, .revents = 0};
    while (!shown.ends_with(end) && poll(&ready, 1, kPatienceMs) > 0) {
      char text[4096];
      const ssize_t bytes = read(ours_, text, sizeof text);
      if (bytes <= 0) break;
      shown.append(text, static_cast<size_t>(bytes));
    }
    return shown;
  }

 private:
  const int saved_;
  int ours_ = -1;
};

// What a replay shows, longer than 40 columns.
std::string Long() {
  const ReplayProgress now{.fraction = 0.25,
                           .elapsed_ns = 10 * kNanosPerSecond,
                           .issued = 20'000,
                           .completed = 20'000,
                           .errors = 0,
                           .in_flight = 4,
                           .bytes = uint64_t{1} << 30,
                           .lateness_max_ns = 1000};
  return ProgressText(now, {});
}

TEST(ProgressLineTest, TimeLeftIsTheRestAtThePaceSoFar) {
  EXPECT_THAT(Long(), StartsWith(" 25 %  0:10 left 0:30  2,000 IOPS"));
  EXPECT_THAT(ProgressText({}, {}), HasSubstr("left ?"));
}

TEST(ProgressLineTest, ANarrowTerminalHasOneLineThatFits) {
  Terminal terminal("xterm");
  FakeClock clock;
  ProgressLine line(&clock);
  line.Show(Long());
  const std::string shown = terminal.ReadTo("\033[K");
  EXPECT_EQ(shown, "\r" + Long().substr(0, 39) + "\033[K");
  line.Clear();
  EXPECT_EQ(terminal.ReadTo("\033[K"), "\r\033[K");
}

TEST(ProgressLineTest, ADumbTerminalAndALogGetALineNowAndThenWithoutEscapes) {
  FakeClock clock;
  const auto steps = [&clock](ProgressLine* line) {
    line->Show("at once");
    clock.AdvanceNs(59 * kNanosPerSecond);
    line->Show("too early");
    clock.AdvanceNs(kNanosPerSecond);
    line->Show("after a minute");
    clock.AdvanceNs(kNanosPerSecond);
    line->Show("too early again");
    clock.AdvanceNs(59 * kNanosPerSecond);
    line->Show("after two");
    line->Clear();
  };
  testing::internal::CaptureStderr();
  {
    ProgressLine line(&clock);
    steps(&line);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "after a minute\nafter two\n");
  Terminal terminal("dumb");
  {
    ProgressLine line(&clock);
    steps(&line);
  }
  const std::string shown = terminal.ReadTo("after two\r\n");
  EXPECT_THAT(shown, StartsWith("after a minute\r\n"));
  EXPECT_THAT(shown, EndsWith("after two\r\n"));
  EXPECT_THAT(shown, Not(HasSubstr("\033")));
  EXPECT_THAT(shown, Not(HasSubstr("early")));
}

TEST(CampaignProgressTest, ALogGetsThePlanAtOnceAndALineNowAndThen) {
  FakeClock clock;
  testing::internal::CaptureStderr();
  {
    CampaignProgress progress(&clock);
    CampaignOptions campaign;
    campaign.target_path = "/dev/sdx";
    const CampaignEvents events = progress.EventsOf(campaign, "");
    events.on_plan(3, {.ns = 600 * kNanosPerSecond, .plus_preparation = true});
    events.on_prepare_progress("preparing", {.phase = "fill 1 of 2", .least_left_ns = {}});
    clock.AdvanceNs(60 * kNanosPerSecond);
    events.on_prepare_progress(
        "preparing",
        {.phase = "fill 1 of 2", .fraction = 0.1, .least_left_ns = 540 * kNanosPerSecond});
    clock.AdvanceNs(540 * kNanosPerSecond);
    events.on_left({.ns = 600 * kNanosPerSecond});
    clock.AdvanceNs(60 * kNanosPerSecond);
    events.on_progress("cycle 1, closed", {.fraction = 0.5, .completed = 1});
    events.on_progress("cycle 1, closed", {.fraction = 0.6, .completed = 2});
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "3 cycles on /dev/sdx: about 10 min 00 s left, plus the preparation\n"
            "preparing, fill 1 of 2: 10 %, at least 9 min 00 s of it left\n"
            "cycle 1, closed: 50 %, 1 I/O, about 9 min 00 s left in all\n");
}

TEST(CampaignProgressTest, ALongPlanNamesTheShorterWay) {
  FakeClock clock;
  testing::internal::CaptureStderr();
  CampaignProgress progress(&clock);
  CampaignOptions campaign;
  campaign.target_path = "/dev/sdx";
  const CampaignEvents events = progress.EventsOf(campaign, "");
  constexpr int64_t kHourNs = 3600 * kNanosPerSecond;
  events.on_plan(3, {.ns = kHourNs});
  // Five cycles of 20 minutes would be no shorter.
  events.on_plan(5, {.ns = kHourNs * 3 / 2});
  events.on_plan(3, {.ns = 17 * kHourNs});
  campaign.budget_ns = kHourNs;
  progress.EventsOf(campaign, "").on_plan(3, {.ns = 3 * kHourNs});
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "3 cycles on /dev/sdx: about 1 h 00 min left\n"
            "5 cycles on /dev/sdx: about 1 h 30 min left\n"
            "3 cycles on /dev/sdx: about 17 h 00 min left\n"
            "  --budget 20m would score a random sample of it in about 1 h 00 min\n"
            "3 cycles on /dev/sdx: about 3 h 00 min left\n");
}

TEST(CampaignProgressTest, ANarrowTerminalHasOneLineThatFits) {
  Terminal terminal("xterm");
  FakeClock clock;
  CampaignProgress progress(&clock);
  CampaignOptions campaign;
  campaign.target_path = "/dev/sdx";
  const CampaignEvents events = progress.EventsOf(campaign, "/dev/sdx, ");
  events.on_progress("cycle 1, closed", {.fraction = 0.5, .completed = 1'200'000});
  EXPECT_EQ(terminal.ReadTo("\033[K"), "\r/dev/sdx, cycle 1, closed: 50 %, 1,200,\033[K");
}

}  // namespace
}  // namespace blktape
