#include "bench/bench.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "base/file.h"
#include "bench/campaign_turns.h"

namespace blktape {
namespace {

// What of a path can be the name of a folder.
std::string FolderName(const std::string& target) {
  std::string name = target.substr(target.starts_with("/dev/") ? 5
                                   : target.starts_with("/")   ? 1
                                                               : 0);
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '.' && c != '_'; },
      '-');
  return name;
}

// The tools of one campaign: what touches its target waits for its turn. The reference, which is
// computed, has cycle 0.
CampaignTools TakingTurns(const CampaignTools& tools, CampaignTurns* turns, size_t campaign) {
  CampaignTools taking = tools;
  // A preparation is told no cycle; it belongs to the one that the next run begins.
  const auto next_cycle = std::make_shared<uint64_t>(1);
  taking.replay = [replay = tools.replay, turns, campaign, next_cycle](
                      const ReplayOptions& options, const std::atomic<bool>& stop,
                      const std::function<void(const ReplayProgress&)>& progress) {
    if (options.cycle > 0) {
      turns->Begin(campaign, options.cycle);
      *next_cycle = options.cycle + 1;
    }
    return replay(options, stop, progress);
  };
  taking.prepare = [prepare = tools.prepare, turns, campaign, next_cycle](
                       const PrepareOptions& options, const std::atomic<bool>& stop,
                       const std::function<void(const PrepareProgress&)>& progress) {
    turns->Begin(campaign, *next_cycle);
    return prepare(options, stop, progress);
  };
  return taking;
}

}  // namespace

std::string BenchFolderOf(const BenchOptions& options, const std::string& target) {
  return options.folder + "/" + FolderName(target);
}

Result<std::vector<BenchResult>> RunBench(
    const BenchOptions& options, const CampaignTools& tools, const std::atomic<bool>& stop,
    const std::function<CampaignEvents(const std::string& target)>& events_of) {
  if (options.targets.empty()) {
    return Status(StatusCode::kInvalidArgument, "no target is named");
  }
  std::set<std::string> folders;
  for (const std::string& target : options.targets) {
    if (!folders.insert(BenchFolderOf(options, target)).second) {
      return Status(StatusCode::kInvalidArgument, target + " is named twice");
    }
  }
  CampaignTurns turns(options.targets.size(), options.order_seed);
  std::vector<BenchResult> results(options.targets.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < options.targets.size(); ++i) {
    BenchResult& result = results[i];
    result.target = options.targets[i];
    result.folder = BenchFolderOf(options, result.target);
    threads.emplace_back([&, i] {
      CampaignOptions campaign = options.campaign;
      campaign.target_path = results[i].target;
      campaign.folder = results[i].folder;
      campaign.reopen = true;
      campaign.identities = options.identities;
      const CampaignTools taking = TakingTurns(tools, &turns, i);
      const CampaignEvents events = events_of(results[i].target);
      Result<ScoreReport> report = RunCampaign(campaign, taking, stop, events);
      results[i].status = report.status();
      if (report.ok()) results[i].report = *std::move(report);
      turns.Leave(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

}  // namespace blktape
