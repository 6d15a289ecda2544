#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "analysis/score_report.h"
#include "base/status.h"
#include "bench/campaign.h"
#include "bench/piece.h"

namespace blktape {

// One campaign for each trace and target: trace after trace, and in each the targets interleaved
// cycle by cycle in random order (CampaignTurns).
struct BenchOptions {
  // The same for all; piece, target_path, folder and identities are filled in.
  CampaignOptions campaign;
  std::vector<TracePiece> traces;
  std::vector<std::string> targets;  // paths, or "sim:NAME"
  // Of one trace, one folder a target lies in this one; of several, these lie in a folder of the
  // trace. So an unfinished bench goes on where it was.
  std::string folder;
  // By path, as ReplayOptions has them.
  std::map<std::string, std::string> identities;
  uint64_t order_seed = 1;
  // Of each trace, as CheckBench() found it; may be empty.
  std::vector<std::shared_ptr<const ScoredTrace>> checked;
};

// The folder of a trace and target within the bench's.
std::string BenchFolderOf(const BenchOptions& options, size_t trace, const std::string& target);

struct BenchResult {
  size_t trace = 0;  // of the options'
  std::string target;
  std::string folder;
  // Of the campaign: `report` holds something only if it is ok.
  Status status;
  ScoreReport report;
};

// CheckCampaign() of all campaigns; keeps in `options` what it found of the traces. kAlreadyExists:
// what is at the bench's folder is no folder, or holds something that no bench of these traces and
// targets left there.
Status CheckBench(BenchOptions* options, const std::atomic<bool>& stop);

// By trace, then by target, each as the options have them. kInvalidArgument: a target or a trace
// named twice, or none. Where one campaign fails before the first run on any target, nothing is run
// on any; the others are kCancelled. The events of a target come on its campaign's thread, of one
// campaign at a time once the first run has begun.
Result<std::vector<BenchResult>> RunBench(
    const BenchOptions& options, const CampaignTools& tools, const std::atomic<bool>& stop,
    const std::function<CampaignEvents(const CampaignOptions& campaign)>& events_of);

}  // namespace blktape
