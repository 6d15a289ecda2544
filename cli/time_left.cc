#include "cli/time_left.h"

#include "base/quantity.h"
#include "base/units.h"

namespace blktape {

std::string EstimateText(const CampaignEstimate& left, const std::string& where) {
  return "about " + FormatDurationNs(left.ns) + " left" + where +
         (left.plus_preparation ? ", plus the preparation" : "");
}

void TimeLeft::Tell(size_t campaign, const CampaignEstimate& left, int64_t now_ns) {
  left_[campaign] = left;
  // The others have waited for their turn since they told theirs.
  end_ns_ = now_ns;
  for (const auto& [one, estimate] : left_) end_ns_ += estimate.ns;
}

std::string TimeLeft::Text(int64_t now_ns) const {
  CampaignEstimate all{.ns = end_ns_ - now_ns};
  for (const auto& [one, estimate] : left_) {
    all.plus_preparation = all.plus_preparation || estimate.plus_preparation;
  }
  if (left_.empty()) return "";
  if (all.ns > kNanosPerSecond) return ", " + EstimateText(all, " in all");
  return all.ns < -kNanosPerSecond ? ", longer than expected" : "";
}

}  // namespace blktape
