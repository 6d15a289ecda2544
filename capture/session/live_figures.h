#pragma once

#include <cstdint>

#include "format/io_record.h"

namespace blktape {

// What a running recording shows of itself.
struct LiveFigures {
  int64_t elapsed_ns = 0;
  uint64_t ios = 0;
  double ios_per_s = 0;      // in the last interval
  double queue_depth = 0;    // mean of the last interval
  double share_4k = 0;       // of reads and writes, since the start; 0 before the first
  uint64_t lost_events = 0;  // since the start
  bool lost_events_is_lower_bound = false;
  uint64_t own_excluded = 0;
  uint64_t filtered = 0;
  uint64_t file_bytes = 0;  // of the trace being written
  uint64_t files_finished = 0;
  uint64_t buffer_bytes_per_cpu = 0;
  int64_t cpu_ns = 0;   // of the recorder, since the start
  bool paused = false;  // the disk of the trace is full
};

// Counts records for LiveFigures. One thread.
class FigureCounter {
 public:
  void OnRecord(const IoRecord& record) {
    ++ios_;
    if (record.op == Op::kRead || record.op == Op::kWrite) {
      ++data_ios_;
      if (record.bytes == 4096) ++data_ios_4k_;
    }
    if (record.issue_ns && record.complete_ns) busy_ns_ += *record.complete_ns - *record.issue_ns;
  }

  // Fills ios, rate, depth and share; the interval is that since the last call that was given
  // `begin_next`.
  void Fill(int64_t now_ns, bool begin_next, LiveFigures* figures) {
    const int64_t span_ns = now_ns - begin_ns_;
    figures->ios = ios_;
    if (span_ns > 0 && begin_ns_ != 0) {
      const auto span = static_cast<double>(span_ns);
      figures->ios_per_s = static_cast<double>(ios_ - begin_ios_) * 1e9 / span;
      // Little's law: time spent in the drive per time passed.
      figures->queue_depth = static_cast<double>(busy_ns_ - begin_busy_ns_) / span;
    }
    if (data_ios_ > 0) {
      figures->share_4k = static_cast<double>(data_ios_4k_) / static_cast<double>(data_ios_);
    }
    if (!begin_next && begin_ns_ != 0) return;
    begin_ns_ = now_ns;
    begin_ios_ = ios_;
    begin_busy_ns_ = busy_ns_;
  }

 private:
  uint64_t ios_ = 0;
  uint64_t data_ios_ = 0;
  uint64_t data_ios_4k_ = 0;
  int64_t busy_ns_ = 0;
  int64_t begin_ns_ = 0;
  uint64_t begin_ios_ = 0;
  int64_t begin_busy_ns_ = 0;
};

}  // namespace blktape
