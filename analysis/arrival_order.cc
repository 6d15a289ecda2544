#include "analysis/arrival_order.h"

#include <algorithm>

#include "base/saturating.h"

namespace blktape {

using Fields = RecordColumns;

ArrivalOrder::ArrivalOrder(int64_t length_ns)
    : activity_(Profile::kActivitySteps, NiceStepNs(length_ns, Profile::kActivitySteps)) {}

void ArrivalOrder::EndStep() {
  if (in_step_ == 0) return;
  activity_.At(step_from_ns_ - *first_ns_) += in_step_;
  in_step_ = 0;
}

void ArrivalOrder::AddArrival(int64_t arrival_ns) {
  if (!first_ns_) {
    first_ns_ = last_ns_ = last_event_ns_ = idle_from_ns_ = arrival_ns;
  } else if (arrival_ns < watermark_ns_) {
    ++out_of_order_;
    if (arrival_ns < *first_ns_) {
      EndStep();
      step_to_ns_ = step_from_ns_ = 0;
      first_ns_ = arrival_ns;
    }
  }
  last_ns_ = std::max(last_ns_, arrival_ns);
  watermark_ns_ = last_ns_;
  if (arrival_ns < step_from_ns_ || arrival_ns >= step_to_ns_) {
    EndStep();
    activity_.At(arrival_ns - *first_ns_);
    const int64_t step_ns = activity_.step_ns();
    step_from_ns_ = *first_ns_ + (arrival_ns - *first_ns_) / step_ns * step_ns;
    step_to_ns_ = SaturatingAdd(step_from_ns_, step_ns);
  }
  ++in_step_;
}

void ArrivalOrder::AddIdle(int64_t arrival_ns, int64_t until_ns) {
  const int64_t idle_ns = arrival_ns - idle_from_ns_;
  if (idle_ns > idle_caps_.front().cap_ns) {
    for (Profile::IdleCap& cap : idle_caps_) {
      cap.cut_ns += std::max<int64_t>(0, idle_ns - cap.cap_ns);
    }
  }
  idle_from_ns_ = std::max({idle_from_ns_, arrival_ns, until_ns});
}

// Software waits from the arrival on; in a result from when a host that is never late would have
// submitted. A derived flush belongs to a write somebody waits for.
void ArrivalOrder::AddWait(const RecordColumns& columns, size_t index) {
  const uint16_t has = columns.present[index];
  const bool queued = (has & Fields::kQueue) != 0;
  const bool issued = (has & Fields::kIssue) != 0;
  if ((!queued && !issued) || (has & Fields::kComplete) == 0) return;
  int64_t from_ns = queued ? columns.queue_ns[index] : columns.issue_ns[index];
  const int64_t complete_ns = columns.complete_ns[index];
  if (complete_ns < from_ns) return;
  if ((has & Fields::kOrdinal) != 0 && (has & Fields::kBacklog) != 0 && issued &&
      columns.issue_ns[index] >= from_ns) {
    const int64_t late_ns = columns.issue_ns[index] - from_ns;
    from_ns += late_ns - static_cast<int64_t>(
                             std::min(columns.backlog_ns[index], static_cast<uint64_t>(late_ns)));
  }
  waits_in_order_.Push(from_ns, std::max(from_ns, complete_ns));
  // A result is in the order of its plan; in a closed loop I/Os are due in another one.
  const bool result = (has & Fields::kOrdinal) != 0;
  waits_in_order_.Release(result ? std::numeric_limits<int64_t>::min() : watermark_ns_,
                          [this](int64_t start, int64_t end) { waits_.Add(start, end); });
}

void ArrivalOrder::Add(const ProfileBatch& batch) {
  const RecordColumns& columns = *batch.columns;
  for (size_t i = 0; i < columns.count; ++i) {
    const bool completed = columns.Has(i, Fields::kComplete);
    if (batch.HasArrival(i)) {
      const int64_t arrival_ns = batch.ArrivalNs(i);
      AddArrival(arrival_ns);
      AddIdle(arrival_ns, completed ? columns.complete_ns[i] : arrival_ns);
    }
    if ((batch.kinds[i] & ProfileBatch::kForeground) != 0) AddWait(columns, i);
    if (completed && first_ns_) last_event_ns_ = std::max(last_event_ns_, columns.complete_ns[i]);
  }
  for (const auto& [op, bytes] : batch.odd_sizes) {
    (op == static_cast<uint8_t>(Op::kRead)    ? read_sizes_
     : op == static_cast<uint8_t>(Op::kWrite) ? write_sizes_
                                              : discard_sizes_)
        .Add(bytes);
  }
}

void ArrivalOrder::MoveInto(Profile* profile) {
  waits_in_order_.ReleaseAll([this](int64_t start, int64_t end) { waits_.Add(start, end); });
  EndStep();
  profile->first_arrival_ns = first_ns_;
  if (first_ns_) {
    profile->duration_ns = last_ns_ - *first_ns_;
    profile->observed_ns = std::max(last_ns_, last_event_ns_) - *first_ns_;
  }
  profile->out_of_order = out_of_order_;
  profile->activity_step_ns = activity_.step_ns();
  profile->activity = activity_.steps();
  profile->idle_caps = idle_caps_;
  profile->wait_ns = waits_.measure_ns();
  profile->wait_cut = waits_.out_of_order();
  profile->read_sizes = read_sizes_;
  profile->write_sizes = write_sizes_;
  profile->discard_sizes = discard_sizes_;
}

}  // namespace blktape
