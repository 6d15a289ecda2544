#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "replay/outcome/lateness_tally.h"

namespace blktape {

// Live figures, written by one thread at a time, read by any.
struct IssueCounters {
  std::atomic<uint64_t> issued = 0;
  std::atomic<uint64_t> completed = 0;
  std::atomic<uint64_t> errors = 0;
  std::atomic<uint64_t> bytes = 0;
  std::atomic<uint32_t> in_flight = 0;
  std::atomic<int64_t> lateness_max_ns = 0;  // readers exchange it for 0
  std::atomic<int64_t> offset_ns = 0;        // kTimed: of the last I/O issued
};

// What an issuer tells of its run when that is over.
struct IssueTotals {
  int64_t first_due_ns = 0;
  int64_t last_complete_ns = 0;
  bool stopped_early = false;
  std::string stop_reason;
  // Of the busiest second (or of the whole run, if that is shorter): the share of time the thread
  // neither slept nor polled for the next due time.
  double busy_share_max = 0;
  uint64_t overlaps_ordered = 0;
  // kTimed: I/Os whose submission took over 100 us, stamped at its end.
  uint64_t stalled_submissions = 0;
  // I/Os of which the thread saw over 100 us after its look before that they were complete.
  uint64_t stalled_completions = 0;
  // I/Os that the driver had done when the submission's call came back, of targets where that is
  // the rule (kTimed).
  uint64_t done_within_call = 0;
  // I/Os for whose completion the thread was woken, instead of polling for it.
  uint64_t woken_completions = 0;
  // How late the thread woke when its sleeps and waits ended by the clock.
  LatenessTally wake_ups;
  // kClosed: commits that a thread asked for, and how many of them and their copies were written.
  struct Commits {
    uint64_t recorded = 0;
    uint64_t written = 0;
    uint64_t left_out = 0;  // I/Os
  };
  Commits commits;
  std::optional<uint64_t> issued_by_reserve;  // absent without a thread in reserve
};

}  // namespace blktape
