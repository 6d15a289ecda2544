#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "analysis/score_report.h"
#include "base/status.h"
#include "bench/campaign.h"

namespace blktape {

// One campaign a target, interleaved cycle by cycle in random order (CampaignTurns).
struct BenchOptions {
  // The same for all; target_path, folder and identities are filled in.
  CampaignOptions campaign;
  std::vector<std::string> targets;  // paths, or "sim:NAME"
  // One folder a target lies in this one, so that an unfinished bench goes on where it was.
  std::string folder;
  // By path, as ReplayOptions has them.
  std::map<std::string, std::string> identities;
  uint64_t order_seed = 1;
};

// The folder of a target within the bench's.
std::string BenchFolderOf(const BenchOptions& options, const std::string& target);

struct BenchResult {
  std::string target;
  std::string folder;
  // Of the campaign: `report` holds something only if it is ok.
  Status status;
  ScoreReport report;
};

// kInvalidArgument: a target named twice, or none. The events of a target come on its campaign's
// thread, of one campaign at a time once the first run has begun.
Result<std::vector<BenchResult>> RunBench(
    const BenchOptions& options, const CampaignTools& tools, const std::atomic<bool>& stop,
    const std::function<CampaignEvents(const std::string& target)>& events_of);

}  // namespace blktape
