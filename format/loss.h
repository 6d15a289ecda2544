#pragma once

#include <cstdint>
#include <map>

#include "format/trace.pb.h"

namespace blktape {

// Whether a stored loss means that events are missing (all but IN_FLIGHT_AT_START / _END).
bool MeansLostEvents(proto::LossReason reason);
// Damage of a trace file in a place that held no event: the seek table, say.
bool IsHarmlessDamage(const proto::Loss& loss);
// "ring overrun", "relay drop", ...: for people.
const char* LossReasonName(proto::LossReason reason);

// `reason`, or LOSS_REASON_UNSPECIFIED for one above 255 or below 0, which is none: that bounds
// what is kept by reason.
proto::LossReason KnownLossReason(proto::LossReason reason);

// Adds losses up by reason. Counts saturate.
class LossTally {
 public:
  struct Total {
    uint64_t count = 0;
    uint64_t unknowable = 0;  // reports without a count
    bool operator==(const Total&) const = default;
  };

  void Add(const proto::Loss& loss);
  void Add(proto::LossReason reason, const Total& total);
  // Events that are missing; a report without a count counts as one.
  uint64_t lost_events() const { return lost_events_; }
  const std::map<proto::LossReason, Total>& by_reason() const { return by_reason_; }

 private:
  std::map<proto::LossReason, Total> by_reason_;
  uint64_t lost_events_ = 0;
};

// The losses that a summary names.
LossTally TallyOf(const proto::Summary& summary);

}  // namespace blktape
