#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace blktape {

// Divides the time from due to submission between the host and the drive (docs/metrics.md,
// "Lateness and backlog"): against a host that never stops, which issues in the order of the plan,
// each I/O when it is due and one of its slots is free, with the service times that were measured.
//
// Such a host would have issued at v: the backlog is v - due, the lateness is submission - v, both
// at least 0, and together exactly submission - due. A stop of the host is then its own also for
// the I/Os that find all slots taken by what went out late at once; and an I/O that came due while
// the drive held all slots waits at the drive's cost, however long.
//
// All times in ns. One issuing thread's I/Os, in the order of the plan. Not thread-safe.
class LatenessSplit {
 public:
  // What the host takes to see a completion and to issue the next I/O must not add up over the
  // thousands that wait in line for a drive: a delay of its own makes an I/O's slot late for the
  // next one only if it is more than this.
  static constexpr int64_t kReactionNs = 100'000;

  // At most `depth` I/Os are in flight.
  explicit LatenessSplit(uint32_t depth) : depth_(depth) {}

  struct Parts {
    int64_t lateness_ns = 0;
    int64_t backlog_ns = 0;
  };
  // `freed_ns`: when what else of the drive's it waited for had completed (a conflicting I/O, one
  // that held the memory); INT64_MIN if nothing.
  Parts Add(int64_t due_ns, int64_t freed_ns, int64_t issue_ns, int64_t complete_ns);

 private:
  // When a slot becomes free for that host, and when it really does.
  struct Slot {
    int64_t prompt_ns = 0;
    int64_t real_ns = 0;
    auto operator<=>(const Slot&) const = default;
  };

  const uint32_t depth_;
  std::priority_queue<Slot, std::vector<Slot>, std::greater<>> slots_;
  // The latest time without a break in which I/Os so far were at the drive.
  int64_t busy_from_ns_ = INT64_MAX;
  int64_t busy_to_ns_ = INT64_MIN;
};

}  // namespace blktape
