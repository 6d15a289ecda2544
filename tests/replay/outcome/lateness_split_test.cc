#include "replay/outcome/lateness_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <queue>
#include <vector>

namespace blktape {
namespace {

constexpr int64_t kNone = INT64_MIN;
constexpr int64_t kUs = 1'000;
constexpr int64_t kMs = 1'000'000;

// Takes the I/Os of a plan by their times alone, as if each were seen when it was complete.
class Split {
 public:
  explicit Split(const std::vector<uint32_t>& depths) : split_(depths) {}
  explicit Split(uint32_t depth) : split_({depth}) {}
  LatenessSplit::Parts Add(IssuedIo io) {
    io.sequence = next_++;
    if (io.seen_ns == 0) io.seen_ns = io.complete_ns;
    return split_.Add(io);
  }
  LatenessSplit::Parts Add(int64_t due_ns, int64_t freed_ns, int64_t issue_ns,
                           int64_t complete_ns) {
    return Add(
        {.due_ns = due_ns, .freed_ns = freed_ns, .issue_ns = issue_ns, .complete_ns = complete_ns});
  }

 private:
  LatenessSplit split_;
  uint64_t next_ = 0;
};

void Expect(LatenessSplit::Parts parts, int64_t lateness_ns, int64_t backlog_ns) {
  EXPECT_EQ(parts.lateness_ns, lateness_ns);
  EXPECT_EQ(parts.backlog_ns, backlog_ns);
}

TEST(LatenessSplitTest, OfIosInAnyOrderEachTellsWhatItWaitedFor) {
  Split split(0);
  Expect(split.Add(100, kNone, 130, 200), 30, 0);
  Expect(split.Add(50, 180, 190, 300), 10, 130);
  Expect(split.Add(10, kNone, 15, 20), 5, 0);
}

TEST(LatenessSplitTest, WithAFreeSlotAllIsTheHosts) {
  Split split(2);
  Expect(split.Add(0, kNone, 0, 10 * kMs), 0, 0);
  Expect(split.Add(1 * kMs, kNone, 4 * kMs, 5 * kMs), 3 * kMs, 0);
}

TEST(LatenessSplitTest, WhileTheDriveHoldsAllSlotsAllIsItsBacklog) {
  Split split(1);
  Expect(split.Add(0, kNone, 0, 10 * kMs), 0, 0);
  // Due at 1 ms; the slot is free at 10, and it goes out 20 us later.
  Expect(split.Add(1 * kMs, kNone, 10 * kMs + 20 * kUs, 12 * kMs), 20 * kUs, 9 * kMs);
}

// The host stops from 0 to 100 ms, the drive is idle and would have taken 1 ms for each. When the
// host is back, two slots take two I/Os at a time, and the others wait for those.
TEST(LatenessSplitTest, AStopOfTheHostIsItsOwnAlsoForThoseThatFindTheSlotsTaken) {
  Split split(2);
  for (int64_t i = 0; i < 8; ++i) {
    const int64_t due_ns = 10 * kMs * i;
    const int64_t issue_ns = (100 + i / 2) * kMs;
    Expect(split.Add(due_ns, kNone, issue_ns, issue_ns + kMs), issue_ns - due_ns, 0);
  }
}

// A drive of 10 ms an I/O and one slot is full from the start; the host stops from 25 to 60 ms. The
// third of four I/Os would have gone out at 20, and did; the fourth at 30 instead of 60.
TEST(LatenessSplitTest, AStopOfTheHostWithinABacklogIsTakenOutOfIt) {
  Split split(1);
  Expect(split.Add(0, kNone, 0, 10 * kMs), 0, 0);
  Expect(split.Add(0, kNone, 10 * kMs, 20 * kMs), 0, 10 * kMs);
  Expect(split.Add(0, kNone, 20 * kMs, 30 * kMs), 0, 20 * kMs);
  Expect(split.Add(0, kNone, 60 * kMs, 70 * kMs), 30 * kMs, 30 * kMs);
  // The next follows at once; it would have gone out at 40.
  Expect(split.Add(0, kNone, 70 * kMs, 80 * kMs), 30 * kMs, 40 * kMs);
}

// Bursts of 120 reads at depth 8 on a drive of four units and 1.5 ms: eight go out at once, each
// other one 30 us after a completion. No I/O is late by more than those 30 us.
TEST(LatenessSplitTest, InABurstOnASlowDriveTheHostsPartIsItsReactionAndDoesNotAddUp) {
  constexpr int64_t kServiceNs = 1'500 * kUs;
  constexpr int64_t kReactionNs = 30 * kUs;
  Split split(8);
  std::vector<int64_t> units(4, 0);  // free at
  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>> out;
  for (int i = 0; i < 120; ++i) {
    int64_t issue_ns = 0;
    if (out.size() == 8) {
      issue_ns = out.top() + kReactionNs;
      out.pop();
    }
    auto unit = std::ranges::min_element(units);
    *unit = std::max(*unit, issue_ns) + kServiceNs;
    out.push(*unit);
    const LatenessSplit::Parts parts = split.Add(0, kNone, issue_ns, *unit);
    EXPECT_EQ(parts.lateness_ns, i < 8 ? 0 : kReactionNs);
    EXPECT_EQ(parts.lateness_ns + parts.backlog_ns, issue_ns);
  }
}

// The same drive, 2,000 I/Os in line for it, and the host once 150 us late instead of 30: one I/O
// is later than 100 us, since the drive went on with seven others meanwhile.
TEST(LatenessSplitTest, OneHiccupInALongBacklogMakesOneIoLate) {
  constexpr int64_t kServiceNs = 1'500 * kUs;
  Split split(8);
  int64_t drive_free_ns = 0;
  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>> out;
  int late = 0;
  for (int i = 0; i < 2'000; ++i) {
    int64_t issue_ns = 0;
    if (out.size() == 8) {
      issue_ns = out.top() + (i == 100 ? 150 * kUs : 30 * kUs);
      out.pop();
    }
    drive_free_ns = std::max(drive_free_ns, issue_ns) + kServiceNs;
    out.push(drive_free_ns);
    const LatenessSplit::Parts parts = split.Add(0, kNone, issue_ns, drive_free_ns);
    EXPECT_EQ(parts.lateness_ns + parts.backlog_ns, issue_ns);
    if (parts.lateness_ns > 100 * kUs) ++late;
  }
  EXPECT_EQ(late, 1);
}

TEST(LatenessSplitTest, WhatWaitedForAConflictingIoWaitedForTheDrive) {
  Split split(8);
  Expect(split.Add(0, kNone, 0, 5 * kMs), 0, 0);
  Expect(split.Add(1 * kMs, /*freed_ns=*/5 * kMs, 5 * kMs + 10 * kUs, 6 * kMs), 10 * kUs, 4 * kMs);
}

// The host stops until 100 ms and issues the first then, which takes 1 ms; the second conflicts
// with it and has slots enough. Without the stop it would have gone out at 1 ms.
TEST(LatenessSplitTest, WhatWaitedForAConflictingIoThatTheHostWasLateWithWaitedForTheHost) {
  Split split(8);
  Expect(split.Add(0, kNone, 100 * kMs, 101 * kMs), 100 * kMs, 0);
  Expect(split.Add({.due_ns = 0,
                    .freed_ns = 101 * kMs,
                    .freed_by = 0,
                    .issue_ns = 101 * kMs + 10 * kUs,
                    .complete_ns = 102 * kMs}),
         100 * kMs + 10 * kUs, 1 * kMs);
}

TEST(LatenessSplitTest, TheSameThroughAnotherLane) {
  Split split({4, 4});
  Expect(split.Add(0, kNone, 100 * kMs, 101 * kMs), 100 * kMs, 0);
  // Its thread saw 20 us later that the other's was complete.
  Expect(split.Add({.lane = 1,
                    .due_ns = 0,
                    .freed_ns = 101 * kMs + 20 * kUs,
                    .freed_by = 0,
                    .issue_ns = 101 * kMs + 30 * kUs,
                    .complete_ns = 102 * kMs}),
         100 * kMs + 30 * kUs, 1 * kMs);
}

// The drive was done at 5 ms, or at any time since then: the host looked at 5 and not until 80.
TEST(LatenessSplitTest, WhatWaitedForACompletionThatTheHostSawLateWaitedForTheHost) {
  Split split(1);
  Expect(split.Add({.due_ns = 0, .issue_ns = 0, .complete_ns = 5 * kMs, .seen_ns = 80 * kMs}), 0,
         0);
  Expect(split.Add(1 * kMs, kNone, 80 * kMs, 85 * kMs), 75 * kMs, 4 * kMs);
}

TEST(LatenessSplitTest, AnIoThatIsEarlyByItsStampsIsNeither) {
  Split split(1);
  Expect(split.Add(10, kNone, 9, 20), 0, 0);
}

}  // namespace
}  // namespace blktape
