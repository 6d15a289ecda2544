#pragma once

#include <cstdint>
#include <optional>

#include "format/io_record.h"

namespace blktape {

// When each I/O of a timed replay is due, counted from the first one. Pure; every record of the
// trace passes through it, also those that are skipped: skipped I/Os keep their time.
class Schedule {
 public:
  // Nothing is due farther from the start, as 146 years are: a sum with a time of the clock fits.
  static constexpr int64_t kFarthestNs = int64_t{1} << 62;

  // `speed` > 0: 2 = twice as fast. `idle_cap_ns`: a stretch of the recording in which nothing was
  // in flight (from the last completion so far to the next arrival) is cut to this length, before
  // the speed is applied.
  Schedule(double speed, std::optional<int64_t> idle_cap_ns)
      : speed_(speed), idle_cap_ns_(idle_cap_ns) {}

  // Takes the next record and returns when it is due. One without any time is due with the one
  // before it. Times of a trace may be anything: differences that do not fit end at the bound.
  int64_t Advance(const IoRecord& io);

  // How much of the recording's time the idle cap cut so far.
  int64_t idle_cut_ns() const { return idle_cut_ns_; }
  // Of that, just before the last record.
  int64_t last_cut_ns() const { return last_cut_ns_; }
  // A stretch of the recording's time at this replay's speed.
  int64_t ScaleNs(int64_t ns) const;

 private:
  const double speed_;
  const std::optional<int64_t> idle_cap_ns_;
  std::optional<int64_t> first_ns_;
  int64_t busy_until_ns_ = 0;
  int64_t idle_cut_ns_ = 0;
  int64_t last_cut_ns_ = 0;
  int64_t due_ns_ = 0;
};

}  // namespace blktape
