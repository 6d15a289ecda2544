#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/foreground.h"
#include "base/units.h"
#include "format/io_record.h"

namespace blktape {

inline constexpr uint64_t kMostSegments = 20;
inline constexpr uint64_t kForegroundPerSegment = 2'000;  // at least
inline constexpr int64_t kCutGapNs = 100 * kNanosPerMilli;

// One piece of a trace, by index among the trace's records: [first_ordinal, end_ordinal). Records
// of it that are not replayed (of another device) are in none of its counts.
struct Segment {
  uint64_t first_ordinal = 0;
  uint64_t end_ordinal = 0;
  uint64_t foreground = 0;  // I/Os
  std::array<uint64_t, kWaitClasses> by_class{};
  uint64_t bytes = 0;        // of all data requests
  bool cut_at_idle = false;  // it begins after an idle gap of at least kCutGapNs
  // When it begins: arrival of its first record, since the first arrival of what is cut; of a
  // record without an arrival that of the one before.
  int64_t from_ns = 0;

  bool operator==(const Segment&) const = default;
};

// How a trace, or the piece of it that is replayed, is cut for the score: a function of these
// alone. docs/score.md, "Segments". Of a sample the segments are its windows: they ascend but leave
// out what lies between, and the counts are of all that is replayed, lead-ins included.
struct Segmentation {
  std::vector<Segment> segments;  // K >= 1 of them, ascending
  bool has_gaps = false;          // of a sample: records between segments count nowhere
  uint64_t records = 0;           // that are replayed or left out by name
  uint64_t data_requests = 0;     // reads and writes with data
  // Records without a completion or an arrival: in a run in the recording's order nothing waits for
  // these.
  uint64_t without_order = 0;
  // True where the trace marks no I/O as foreground: then all data requests and flushes count as
  // such, reads and writes by their own class.
  bool all_is_foreground = false;
  // From the first arrival to the last arrival or completion.
  int64_t observed_ns = 0;
  uint64_t read_bytes = 0;
  uint64_t write_bytes = 0;

  // Of all segments.
  uint64_t foreground() const;

  // The class of `io` under this segmentation.
  WaitClass ClassOf(const IoRecord& io) const {
    const WaitClass own = WaitClassOf(io);
    if (own == WaitClass::kBackground && all_is_foreground && io.op == Op::kWrite) {
      return WaitClass::kSyncWriteOrFlush;
    }
    return own;
  }
  // Which segment holds the record of this index; absent if it is beyond them or in a gap.
  std::optional<size_t> SegmentOf(uint64_t ordinal) const;
};

// K for that many foreground I/Os.
uint64_t SegmentCount(uint64_t foreground);

// Two passes over what is replayed. Feed all records to the first, then to the second; of those
// that are left out by name only the second is told.
class ForegroundCounter {
 public:
  void Add(const IoRecord& io);
  uint64_t marked() const { return marked_; }
  uint64_t if_all() const { return if_all_; }

 private:
  uint64_t marked_ = 0;
  uint64_t if_all_ = 0;  // if all writes were foreground too
};

class SegmentCutter {
 public:
  explicit SegmentCutter(const ForegroundCounter& counted);
  // `ordinal`: its index in the trace, ascending. `left_out`: by name, as I/Os of another device.
  void Add(const IoRecord& io, uint64_t ordinal, bool left_out = false);
  Segmentation Finish();

 private:
  // One cut between two segments: before the foreground I/O of index `ideal`, or at the idle gap
  // nearest to it, counted in foreground I/Os, within `window_` of it.
  struct Cut {
    uint64_t ideal = 0;
    bool at_idle = false;
    uint64_t foreground = 0;  // foreground I/Os before it
    uint64_t ordinal = 0;
    int64_t from_ns = 0;
    bool set = false;
  };
  // What a segment would hold if it began at the start of the trace.
  struct Running {
    uint64_t foreground = 0;
    std::array<uint64_t, kWaitClasses> by_class{};
    uint64_t bytes = 0;
  };
  void Consider(uint64_t ordinal, bool idle);

  Segmentation result_;
  uint64_t foreground_total_ = 0;
  uint64_t first_ordinal_ = 0;
  uint64_t end_ordinal_ = 0;
  uint64_t window_ = 0;
  std::vector<Cut> cuts_;
  std::vector<Running> at_cut_;
  size_t next_cut_ = 0;  // cuts before it can change no more
  Running running_;
  std::optional<int64_t> first_ns_;
  int64_t last_arrival_ns_ = 0;  // since the first
  int64_t busy_until_ns_ = 0;
};

}  // namespace blktape
