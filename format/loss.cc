#include "format/loss.h"

#include <limits>

namespace blktape {
namespace {

void AddSaturating(uint64_t more, uint64_t* total) {
  if (__builtin_add_overflow(*total, more, total)) *total = std::numeric_limits<uint64_t>::max();
}

}  // namespace

proto::LossReason KnownLossReason(proto::LossReason reason) {
  return reason < 0 || reason > 255 ? proto::LOSS_REASON_UNSPECIFIED : reason;
}

bool MeansLostEvents(proto::LossReason reason) {
  return reason != proto::IN_FLIGHT_AT_START && reason != proto::IN_FLIGHT_AT_END;
}

bool IsHarmlessDamage(const proto::Loss& loss) {
  return (loss.reason() == proto::DAMAGED_INPUT || loss.reason() == proto::TRUNCATED_INPUT) &&
         loss.has_count() && loss.count() == 0;
}

const char* LossReasonName(proto::LossReason reason) {
  switch (reason) {
    case proto::RING_OVERRUN:
      return "ring overrun";
    case proto::RELAY_DROP:
      return "relay drop";
    case proto::SEQUENCE_GAP:
      return "sequence gap";
    case proto::ORPHAN_COMPLETION:
      return "completion without issue";
    case proto::ISSUE_WITHOUT_COMPLETION:
      return "issue without completion";
    case proto::CLOCK_STEP:
      return "clock step";
    case proto::MERGE_WINDOW_EXCEEDED:
      return "merge window exceeded";
    case proto::TAG_REUSED:
      return "tag reused";
    case proto::MISSING_START_TIME:
      return "missing start time";
    case proto::DAMAGED_INPUT:
      return "damaged input";
    case proto::TRUNCATED_INPUT:
      return "truncated input";
    case proto::IN_FLIGHT_AT_START:
      return "in flight at start";
    case proto::IN_FLIGHT_AT_END:
      return "in flight at end";
    case proto::DEVICE_REMOVED:
      return "device removed";
    case proto::WRITE_FAILED:
      return "write failed";
    case proto::UNDECODABLE_EVENT:
      return "undecodable event";
    case proto::QUEUE_WITHOUT_ISSUE:
      return "queued, never issued";
    case proto::TRACING_ENDED:
      return "tracing ended by others";
    default:
      return "unknown reason";
  }
}

LossTally::Total LossTally::Total::Of(const proto::Loss& loss) {
  return loss.has_count() ? Total{loss.count(), 0} : Total{0, 1};
}

void LossTally::Total::Add(const Total& more) {
  AddSaturating(more.count, &count);
  AddSaturating(more.unknowable, &unknowable);
}

void LossTally::Add(const proto::Loss& loss) { Add(loss.reason(), Total::Of(loss)); }

void LossTally::Add(proto::LossReason reason, const Total& total) {
  by_reason_[reason].Add(total);
  if (!MeansLostEvents(reason)) return;
  AddSaturating(total.count, &lost_events_);
  AddSaturating(total.unknowable, &lost_events_);
  is_lower_bound_ |= total.unknowable > 0;
}

LossTally TallyOf(const proto::Summary& summary) {
  LossTally tally;
  for (const proto::LossTotal& total : summary.losses()) {
    tally.Add(total.reason(), {total.count(), total.unknowable()});
  }
  return tally;
}

}  // namespace blktape
