#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "bench/campaign.h"

namespace blktape {

// How long campaigns that take turns on one machine still take together. Each tells its own
// estimate whenever it knows better, and only one works at a time.
class TimeLeft {
 public:
  // Of a campaign, by any number of its own.
  void Tell(size_t campaign, const CampaignEstimate& left, int64_t now_ns);

  // ", about 12 min 00 s left in all, plus the preparation"; empty where nothing is known, and
  // ", longer than expected" where it should be over.
  std::string Text(int64_t now_ns) const;

 private:
  std::map<size_t, CampaignEstimate> left_;
  int64_t end_ns_ = 0;  // as of the last that was told
};

// "about 12 min 00 s left, plus the preparation".
std::string EstimateText(const CampaignEstimate& left, const std::string& where);

}  // namespace blktape
