#pragma once

#include <cstdint>
#include <optional>

#include "analysis/latency_histogram.h"
#include "analysis/profile.h"
#include "format/trace.pb.h"

namespace blktape {

// What older benchmarks would have printed of the same runs, beside the score and never in it.
// docs/score.md, "Also printed". All runs of one kind are taken together.
class DerivedFigures {
 public:
  void AddTimed(const Profile& result);
  // `outcome` tells how long the run took.
  void AddMax(const Profile& result, const proto::ReplayOutcome& outcome);

  // Tom's Storage Bench: bytes / busy time of the timed runs, decimal MB/s.
  std::optional<double> data_rate_mb_s() const;
  // The mean service time (D2C) of reads and writes in the timed runs, us.
  std::optional<double> access_time_us() const;
  // PCMark 10's form without its constant: sqrt(MB/s * 1 / access time in ms).
  std::optional<double> pcmark_form() const;
  // Of the runs at max speed: reads and writes a second, decimal MB/s, bytes a transfer.
  std::optional<double> max_iops() const;
  std::optional<double> max_mb_s() const;
  std::optional<double> mean_transfer_bytes() const;

  // Timed runs.
  const LatencyHistogram& read_response() const { return read_response_; }
  const LatencyHistogram& write_response() const { return write_response_; }
  const LatencyHistogram& read_service() const { return read_service_; }
  const LatencyHistogram& write_service() const { return write_service_; }

 private:
  LatencyHistogram read_response_, write_response_, read_service_, write_service_;
  double timed_bytes_ = 0;
  double timed_busy_ns_ = 0;
  double max_ios_ = 0;
  double max_bytes_ = 0;
  double max_wall_ns_ = 0;
};

}  // namespace blktape
