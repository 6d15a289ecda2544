#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "replay/issue/issued_io.h"

namespace blktape {

// Divides the time from due to submission between the host and the drive (docs/metrics.md,
// "Lateness and backlog"): it compares the real host with an ideal one that never stalls. The ideal
// host issues in the order of the plan; it issues each I/O as soon as the I/O is due, a slot is
// free and all I/Os that it depends on are complete. Service times are those that were measured.
//
// If the ideal host would have issued at v, the backlog is v - due and the lateness is submission -
// v. Both are at least 0, and their sum is exactly submission - due. A stall of the host thus also
// counts as lateness for I/Os that find all slots taken by a burst of late I/Os, and for I/Os that
// wait for a late conflicting I/O of any lane. The wait of an I/O that came due while the drive
// held all slots counts as backlog, however long it is.
//
// All times in ns. Not thread-safe.
class LatenessSplit {
 public:
  // The host needs some time to see a completion and to issue the next I/O. These short delays must
  // not add up over thousands of I/Os that wait in line for a drive: a delay of the host makes an
  // I/O's slot late for the next I/O only if it is longer than this.
  static constexpr int64_t kReactionNs = 100'000;

  // At most depths[lane] I/Os of each issuing thread are in flight. 0: the lane's I/Os come in any
  // order, and freed_ns of each says when it got its slot.
  explicit LatenessSplit(const std::vector<uint32_t>& depths);

  struct Parts {
    int64_t lateness_ns = 0;
    int64_t backlog_ns = 0;
  };
  // Call once for each I/O of all lanes, in the order of the plan. Uses the lane, sequence and
  // times of `io`.
  Parts Add(const IssuedIo& io);

 private:
  // When something becomes free for the ideal host, and when it really did.
  struct Free {
    int64_t prompt_ns = 0;
    int64_t real_ns = 0;
    auto operator<=>(const Free&) const = default;
    void Await(const Free& other);
  };
  struct Lane {
    uint32_t depth = 0;
    std::priority_queue<Free, std::vector<Free>, std::greater<>> slots;
    // The latest unbroken period in which this lane's I/Os were at the drive.
    int64_t busy_from_ns = INT64_MAX;
    int64_t busy_to_ns = INT64_MIN;
  };
  // When a recent I/O was complete. An I/O only ever waits for I/Os that were in flight with it.
  struct Ended {
    uint64_t sequence = kNoSequence;
    Free free;
  };

  Free EndOf(const IssuedIo& waiting) const;

  std::vector<Lane> lanes_;
  std::vector<Ended> ended_;  // index = sequence modulo its size (a power of two)
};

}  // namespace blktape
