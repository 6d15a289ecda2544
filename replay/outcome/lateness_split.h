#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "replay/issue/issued_io.h"

namespace blktape {

// Divides the time from due to submission between the host and the drive (docs/metrics.md,
// "Lateness and backlog"): against a host that never stops, which issues in the order of the plan,
// each I/O when it is due, one of its slots is free and what it has to wait for is complete, with
// the service times that were measured.
//
// Such a host would have issued at v: the backlog is v - due, the lateness is submission - v, both
// at least 0, and together exactly submission - due. A stop of the host is then its own also for
// the I/Os that find all slots taken by what went out late at once, and for those that wait for a
// conflicting one that went out late, in whatever lane; and an I/O that came due while the drive
// held all slots waits at the drive's cost, however long.
//
// All times in ns. Not thread-safe.
class LatenessSplit {
 public:
  // What the host takes to see a completion and to issue the next I/O must not add up over the
  // thousands that wait in line for a drive: a delay of its own makes an I/O's slot late for the
  // next one only if it is more than this.
  static constexpr int64_t kReactionNs = 100'000;

  // At most depths[lane] I/Os of each issuing thread are in flight. 0: its I/Os come in any order,
  // and each tells by freed_ns also when it got its slot.
  explicit LatenessSplit(const std::vector<uint32_t>& depths);

  struct Parts {
    int64_t lateness_ns = 0;
    int64_t backlog_ns = 0;
  };
  // The I/Os of all lanes, in the order of the plan: of `io` its lane, sequence and times are used.
  Parts Add(const IssuedIo& io);

 private:
  // When something becomes free for that host, and when it really does.
  struct Free {
    int64_t prompt_ns = 0;
    int64_t real_ns = 0;
    auto operator<=>(const Free&) const = default;
    void Await(const Free& other);
  };
  struct Lane {
    uint32_t depth = 0;
    std::priority_queue<Free, std::vector<Free>, std::greater<>> slots;
    // The latest time without a break in which I/Os so far were at the drive.
    int64_t busy_from_ns = INT64_MAX;
    int64_t busy_to_ns = INT64_MIN;
  };
  // When an I/O of late was complete. What others wait for was in flight with them.
  struct Ended {
    uint64_t sequence = kNoSequence;
    Free free;
  };

  Free EndOf(const IssuedIo& waiting) const;

  std::vector<Lane> lanes_;
  std::vector<Ended> ended_;  // index = sequence modulo its size (a power of two)
};

}  // namespace blktape
