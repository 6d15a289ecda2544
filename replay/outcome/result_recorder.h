#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "base/status.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "format/trace_writer.h"
#include "replay/issue/issued_io.h"
#include "replay/outcome/lateness_split.h"
#include "replay/outcome/lateness_tally.h"

namespace blktape {

// Turns completions into the result trace, in the order of the plan, and counts how it went. An I/O
// that stayed in flight while `window` later ones completed is written when it comes, out of order:
// so memory is bounded. Not thread-safe.
class ResultRecorder {
 public:
  // `writer` may be null, `observe` empty: then it only counts; both must outlive the recorder.
  // `observe` gets each record after the writer. `depths`: for each issuing thread how many I/Os it
  // has in flight at most.
  ResultRecorder(TraceWriter* writer, const std::vector<uint32_t>& depths,
                 std::function<void(const IoRecord&)> observe = {}, uint32_t window = 1 << 17);

  // In any order. A failure of the writer is kept and returned by each further call. What depends
  // on the order, lateness among it, is counted once it is that I/O's turn.
  Status Add(const IssuedIo& io);
  // What is still held back; after the last Add().
  Status Flush();

  // Fills in what was counted: completed, errors, bytes, lateness. Durations of the run and skipped
  // I/Os are the caller's.
  void Report(proto::ReplayOutcome* outcome) const;

 private:
  struct Held {
    IssuedIo io;
    bool there = false;
  };
  void Count(const IssuedIo& io);
  LatenessSplit::Parts Split(const IssuedIo& io);
  Status Write(const IssuedIo& io);
  Status WriteReady();

  TraceWriter* const writer_;
  const std::function<void(const IoRecord&)> observe_;
  const uint32_t window_;
  Status status_;
  std::vector<Held> held_;  // a ring; index = sequence modulo its size (a power of two)
  uint64_t next_ = 0;       // the first sequence not written
  uint64_t held_count_ = 0;

  uint64_t completed_ = 0;
  uint64_t errors_ = 0;
  uint64_t short_transfers_ = 0;
  uint64_t bytes_ = 0;
  uint64_t punted_ = 0;
  uint64_t late_100us_ = 0;
  uint64_t late_1ms_ = 0;
  LatenessTally lateness_;
  LatenessSplit split_;
  std::map<int32_t, uint64_t> errors_by_errno_;
};

}  // namespace blktape
