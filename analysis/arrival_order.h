#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "analysis/interval_union.h"
#include "analysis/profile.h"
#include "analysis/profile_batch.h"
#include "analysis/reorder_buffer.h"
#include "analysis/step_series.h"
#include "base/units.h"

namespace blktape {

// The figures of a profile that depend on the order in which records arrived: its times, activity,
// what an idle cap cuts, time somebody waited; and odd sizes, of which only the first many have a
// row. One thread at a time.
class ArrivalOrder {
 public:
  // `length_ns`: how long the trace will be, as far as is known.
  explicit ArrivalOrder(int64_t length_ns);
  void Add(const ProfileBatch& batch);
  // Call once, last: sets these figures in `profile`.
  void MoveInto(Profile* profile);

 private:
  void AddArrival(int64_t arrival_ns);
  // `until_ns`: when the I/O that arrived was complete.
  void AddIdle(int64_t arrival_ns, int64_t until_ns);
  void AddWait(const RecordColumns& columns, size_t index);

  std::optional<int64_t> first_ns_;
  int64_t watermark_ns_ = std::numeric_limits<int64_t>::min();
  int64_t last_ns_ = 0;
  int64_t last_event_ns_ = 0;
  uint64_t out_of_order_ = 0;
  StepSeries<uint64_t> activity_;
  // Of activity_: the step under way and what it has not been told of yet.
  int64_t step_from_ns_ = 0;
  int64_t step_to_ns_ = 0;
  uint64_t in_step_ = 0;
  void EndStep();

  int64_t idle_from_ns_ = 0;  // as `replay --idle-cap` has it
  decltype(Profile::idle_caps) idle_caps_ = Profile().idle_caps;
  ReorderBuffer<int64_t> waits_in_order_;  // ends
  UnionMeasure waits_;
  SizeHistogram read_sizes_, write_sizes_, discard_sizes_;  // odd ones
};

}  // namespace blktape
