#include "bench/bench.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <semaphore>
#include <set>
#include <thread>
#include <utility>

#include "base/file.h"
#include "bench/campaign_turns.h"

namespace blktape {
namespace {

namespace fs = std::filesystem;

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
// `comes` is called before its first turn.
CampaignTools TakingTurns(const CampaignTools& tools, CampaignTurns* turns, size_t campaign,
                          const std::function<void()>& comes) {
  CampaignTools taking = tools;
  // A preparation is told no cycle; it belongs to the one that the next run begins.
  const auto next_cycle = std::make_shared<uint64_t>(1);
  const auto begin = [turns, campaign, comes](uint64_t cycle) {
    comes();
    if (turns->Begin(campaign, cycle)) return OkStatus();
    return Status(StatusCode::kCancelled, "nothing was run, as another drive cannot be measured");
  };
  taking.replay = [replay = tools.replay, begin, next_cycle](
                      const ReplayOptions& options, const std::atomic<bool>& stop,
                      const std::function<void(const ReplayProgress&)>& progress)
      -> Result<proto::ReplayOutcome> {
    if (options.cycle > 0) {
      RETURN_IF_ERROR(begin(options.cycle));
      *next_cycle = options.cycle + 1;
    }
    return replay(options, stop, progress);
  };
  taking.prepare =
      [prepare = tools.prepare, begin, next_cycle](
          const PrepareOptions& options, const std::atomic<bool>& stop,
          const std::function<void(const PrepareProgress&)>& progress) -> Result<PrepareReport> {
    RETURN_IF_ERROR(begin(*next_cycle));
    return prepare(options, stop, progress);
  };
  return taking;
}

CampaignOptions CampaignOf(const BenchOptions& options, size_t trace, const std::string& target) {
  CampaignOptions campaign = options.campaign;
  campaign.piece = options.traces[trace];
  if (trace < options.checked.size()) campaign.trace = options.checked[trace];
  campaign.target_path = target;
  campaign.folder = BenchFolderOf(options, trace, target);
  campaign.reopen = true;
  campaign.identities = options.identities;
  // What a trace finds on the target is what those before have left there.
  campaign.overwrite = campaign.overwrite || trace > 0;
  return campaign;
}

// An unfinished bench of these traces and targets may lie in its folder, or a finished one.
Status CheckFolder(const BenchOptions& options) {
  std::error_code error;
  const fs::file_status there = fs::status(options.folder, error);
  if (!fs::exists(there)) return OkStatus();
  if (!fs::is_directory(there)) {
    return Status(StatusCode::kAlreadyExists,
                  options.folder + " is there already, and no folder\n  try:  -o DIR, a new name");
  }
  std::set<std::string> own;
  for (size_t trace = 0; trace < options.traces.size(); ++trace) {
    for (const std::string& target : options.targets) {
      const fs::path within =
          fs::path(BenchFolderOf(options, trace, target)).lexically_relative(options.folder);
      own.insert(within.begin()->string());
    }
  }
  std::string results;  // one of them
  bool began = false;
  for (const auto& entry : fs::directory_iterator(options.folder, error)) {
    const std::string name = entry.path().filename().string();
    const bool result =
        name.starts_with("bench.") || name.starts_with("suite-");  // also of a replacement cut off
    if (own.contains(name)) {
      began = true;
    } else if (result) {
      results = name;
    } else {
      return Status(StatusCode::kAlreadyExists,
                    options.folder + " holds something else than this bench: " + name +
                        "\n  try:  -o DIR, a new name");
    }
  }
  if (error) return ErrnoStatus(error.value(), options.folder);
  if (results.empty() || began) return OkStatus();
  return Status(StatusCode::kAlreadyExists, options.folder + " holds " + results +
                                                ", which is not of this bench"
                                                "\n  try:  -o DIR, a new name");
}

}  // namespace

std::string BenchFolderOf(const BenchOptions& options, size_t trace, const std::string& target) {
  std::string folder = options.folder;
  if (options.traces.size() > 1) {
    // Traces of one name in different folders are told apart by their number.
    const auto name_of = [&options](size_t index) {
      return FolderName(fs::path(options.traces[index].trace_path).stem().string());
    };
    folder += "/" + name_of(trace);
    for (size_t other = 0; other < trace; ++other) {
      if (name_of(other) != name_of(trace)) continue;
      folder += "-" + std::to_string(trace + 1);
      break;
    }
  }
  return folder + "/" + FolderName(target);
}

Status CheckBench(BenchOptions* options, const std::atomic<bool>& stop) {
  RETURN_IF_ERROR(CheckFolder(*options));
  options->checked.clear();
  for (size_t trace = 0; trace < options->traces.size(); ++trace) {
    for (const std::string& target : options->targets) {
      ASSIGN_OR_RETURN(std::shared_ptr<const ScoredTrace> checked,
                       CheckCampaign(CampaignOf(*options, trace, target), stop));
      if (trace == options->checked.size()) options->checked.push_back(std::move(checked));
    }
  }
  return OkStatus();
}

Result<std::vector<BenchResult>> RunBench(
    const BenchOptions& options, const CampaignTools& tools, const std::atomic<bool>& stop,
    const std::function<CampaignEvents(const CampaignOptions& campaign)>& events_of) {
  if (options.targets.empty() || options.traces.empty()) {
    return Status(StatusCode::kInvalidArgument, "no trace or no target is named");
  }
  std::set<std::string> folders;
  std::vector<BenchResult> results;
  for (size_t trace = 0; trace < options.traces.size(); ++trace) {
    for (const std::string& target : options.targets) {
      std::string folder = BenchFolderOf(options, trace, target);
      if (!folders.insert(folder).second) {
        return Status(StatusCode::kInvalidArgument, target + " is named twice");
      }
      results.push_back({trace, target, std::move(folder), OkStatus(), ScoreReport()});
    }
  }
  // Folders of folders that are made for this bench.
  std::set<std::string, std::greater<>> parents;
  for (fs::path within : folders) {
    do {
      within = within.parent_path();
      if (!fs::exists(within)) parents.insert(within);
    } while (within.string().size() > options.folder.size());
  }
  CampaignTurns turns(results.size(), options.targets.size(), options.order_seed);
  // What a campaign computes before its first run takes memory and a CPU: few do so at a time.
  std::counting_semaphore<> computing(
      static_cast<ptrdiff_t>(std::max(1U, std::thread::hardware_concurrency())));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back([&, i] {
      BenchResult& result = results[i];
      const CampaignOptions campaign = CampaignOf(options, result.trace, result.target);
      computing.acquire();
      bool came = false;
      const auto comes = [&] {
        if (!std::exchange(came, true)) computing.release();
      };
      const CampaignTools taking = TakingTurns(tools, &turns, i, comes);
      const CampaignEvents events = events_of(campaign);
      Result<ScoreReport> report = RunCampaign(campaign, taking, stop, events);
      result.status = report.status();
      if (report.ok()) result.report = *std::move(report);
      comes();
      turns.Leave(i, !result.status.ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  // Where nothing was left behind in them, they go, the innermost first; else they are not empty.
  for (const std::string& folder : parents) rmdir(folder.c_str());
  return results;
}

}  // namespace blktape
