#pragma once

#include <cstdint>
#include <map>

#include "format/trace.pb.h"

namespace blktape {

// Whether a stored loss means that events are missing (all but IN_FLIGHT_AT_START / _END).
bool MeansLostEvents(proto::LossReason reason);
// Whether the damage is in a part of the trace file that holds no events, such as the seek table.
bool IsHarmlessDamage(const proto::Loss& loss);
// "ring overrun", "relay drop", ...: the name in messages.
const char* LossReasonName(proto::LossReason reason);

// `reason`, or LOSS_REASON_UNSPECIFIED if it is above 255 or below 0, which no reason is. This
// bounds tables indexed by reason.
proto::LossReason KnownLossReason(proto::LossReason reason);

// Adds up losses by reason. Counts saturate.
class LossTally {
 public:
  struct Total {
    uint64_t count = 0;
    uint64_t unknowable = 0;  // reports without a count
    static Total Of(const proto::Loss& loss);
    void Add(const Total& more);
    bool operator==(const Total&) const = default;
  };

  void Add(const proto::Loss& loss);
  void Add(proto::LossReason reason, const Total& total);
  // The number of missing events. A report without a count counts as one.
  uint64_t lost_events() const { return lost_events_; }
  // Whether one of them was such a report.
  bool is_lower_bound() const { return is_lower_bound_; }
  const std::map<proto::LossReason, Total>& by_reason() const { return by_reason_; }

 private:
  std::map<proto::LossReason, Total> by_reason_;
  uint64_t lost_events_ = 0;
  bool is_lower_bound_ = false;
};

// The losses listed in a summary.
LossTally TallyOf(const proto::Summary& summary);

}  // namespace blktape
