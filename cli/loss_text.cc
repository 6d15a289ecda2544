#include "cli/loss_text.h"

#include <cstdio>

#include "base/quantity.h"
#include "cli/print.h"

namespace blktape {
namespace {

constexpr size_t kMaxRanges = 10;

}  // namespace

std::string LossAmount(const LossTally::Total& total) {
  if (total.unknowable == 0) return FormatCounted(total.count, "event");
  if (total.count == 0) return "an unknown number of events";
  return "at least " + FormatCounted(total.count, "event");
}

void LossLog::OnLoss(const proto::Loss& loss) {
  tally_.Add(loss);
  if (!loss.has_from_bytes()) return;
  if (ranges_.size() < kMaxRanges) {
    ranges_.push_back(loss);
  } else {
    ++ranges_left_out_;
  }
}

std::vector<std::string> LossLog::Lines() const {
  std::vector<std::string> lines;
  for (const auto& [reason, total] : tally_.by_reason()) {
    lines.push_back(std::string(LossReasonName(reason)) + ": " + LossAmount(total));
    for (const proto::Loss& loss : ranges_) {
      if (loss.reason() != reason) continue;
      std::string line = "  bytes " + FormatCount(loss.from_bytes());
      if (loss.to_bytes() != loss.from_bytes()) line += " to " + FormatCount(loss.to_bytes());
      lines.push_back(line + ": " + loss.detail());
    }
  }
  if (ranges_left_out_ != 0) {
    lines.push_back("  and " + FormatCounted(ranges_left_out_, "more damaged place"));
  }
  return lines;
}

void LossLog::Warn(const std::string& name) const {
  for (const std::string& line : Lines()) {
    Print(stderr, "warning: " + name + ": " + line + "\n");
  }
}

}  // namespace blktape
