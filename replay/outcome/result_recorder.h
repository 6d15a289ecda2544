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
#include "replay/plan/host_part.h"

namespace blktape {

// Writes completions to the result trace in the order of the plan, and counts outcomes. To bound
// memory, an I/O that stays in flight while `window` later ones complete is written out of order,
// when it completes. Not thread-safe.
class ResultRecorder {
 public:
  // `writer` may be null and `observe` empty; without both it only counts. Both must outlive the
  // recorder. `observe` gets each record after the writer. `depths`: the maximum number of I/Os in
  // flight of each issuing thread.
  ResultRecorder(TraceWriter* writer, const std::vector<uint32_t>& depths,
                 std::function<void(const IoRecord&)> observe = {}, uint32_t window = 1 << 17);

  // Of each target what is taken out of the time from submission to completion, none by default:
  // the completion in the result is so much earlier, but never before the submission. Before the
  // first Add().
  void TakeOut(const std::vector<HostPart>& host_parts) { host_parts_ = host_parts; }

  // I/Os may come in any order. Of one that is left out only its place in the plan counts. A
  // failure of the writer is kept and returned by every later call. Figures that depend on the
  // order, such as lateness, are counted when it is the I/O's turn in the plan.
  Status Add(const IssuedIo& io);
  // Writes the I/Os that are still held back. Call after the last Add().
  Status Flush();

  // Fills in the counts: completed, errors, bytes, lateness. The caller fills in the run's
  // durations and the skipped I/Os.
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
  std::vector<HostPart> host_parts_;
};

}  // namespace blktape
