#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/loss.h"
#include "format/trace_reader.h"

namespace blktape {

// Keeps what a reader tells of losses, for people: totals by reason, and the first damaged byte
// ranges of the file itself.
class LossLog : public TraceObserver {
 public:
  void OnLoss(const proto::Loss& loss) override;

  const LossTally& tally() const { return tally_; }
  bool empty() const { return tally_.by_reason().empty(); }
  // One a line, as in "ring overrun: 1,234 events".
  std::vector<std::string> Lines() const;
  // The lines as warnings on stderr, each with `name` of the trace in front.
  void Warn(const std::string& name) const;

 private:
  LossTally tally_;
  std::vector<proto::Loss> ranges_;
  uint64_t ranges_left_out_ = 0;
};

// "1,234 events", "an unknown number of events", "at least 12 events".
std::string LossAmount(const LossTally::Total& total);

}  // namespace blktape
