#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/score_report.h"
#include "base/clock.h"
#include "base/status.h"
#include "bench/piece.h"
#include "bench/scored_trace.h"
#include "format/trace.pb.h"
#include "replay/prepare/prepare.h"
#include "replay/replayer.h"
#include "replay/target/queue_setting.h"

namespace blktape {

inline constexpr uint64_t kLeastCycles = 3;
// Of a published score: the first stage, which decides how many cycles there are in all.
inline constexpr uint64_t kFirstStageCycles = 5;
inline constexpr uint64_t kMostCycles = 40;
// Of the simulated drive: how many requests it may hold, more than any recording has had.
inline constexpr uint32_t kReferenceDepth = 4096;
// Where the trace does not tell completions there is no order to keep: work is then measured at
// this queue depth, and the rule says so.
inline constexpr uint32_t kDepthWithoutOrder = 32;
// Think and idle time above this is cut; docs/decisions.md says why.
inline constexpr int64_t kDefaultIdleCapNs = 2 * kNanosPerSecond;
// "sim:NAME" as a target is the simulated drive of that name (replay/engine/drive_model.h).
inline constexpr char kSimulatedTarget[] = "sim:";

struct CampaignOptions {
  TracePiece piece;
  // Of this piece, as CheckCampaign() found it; null: the campaign finds it itself.
  std::shared_ptr<const ScoredTrace> trace;
  std::string target_path;
  std::map<std::string, std::string> identities;  // as ReplayOptions has them
  std::string folder;                             // result traces and state are put there
  // Whether a finished campaign of this is told once more from its result traces: none is run.
  bool reopen = false;
  uint64_t cycles = kLeastCycles;  // that count; at most as many more are spoiled and repeated
  bool published = false;  // two stages: cycles is the first, its spread tells how many more
  bool open_loop = false;  // timed at the recorded times, a rule of its own
  std::optional<int64_t> idle_cap_ns = kDefaultIdleCapNs;  // absent: nothing is cut
  // How long a cycle may take: where the whole takes longer, windows of it are drawn by `seed`.
  std::optional<int64_t> budget_ns;
  uint64_t seed = 1;
  // as-is, used, fresh; empty: fresh for a file, where what was never written would be read from no
  // drive, as-is for all else.
  std::string state;
  bool prepare_each_cycle = false;  // else once, before the first
  bool overwrite = false;
  bool loss_accepted = false;
  std::string reference_folder;  // empty: the simulated drive
  std::string engine = "auto";
  std::string unsupported = "fail";
  std::vector<QueueSetting> queue_settings;  // of the target's disk, during each run
  int64_t pause_ns = 2 * kNanosPerSecond;    // before each run, for the drive to settle
};

// RunReplay and RunPrepare of replay/, or fakes.
using ReplayFunction =
    std::function<Result<proto::ReplayOutcome>(const ReplayOptions&, const std::atomic<bool>& stop,
                                               const std::function<void(const ReplayProgress&)>&)>;
using PrepareFunction =
    std::function<Result<PrepareReport>(const PrepareOptions&, const std::atomic<bool>& stop,
                                        const std::function<void(const PrepareProgress&)>&)>;
struct CampaignTools {
  ReplayFunction replay;
  PrepareFunction prepare;
  Clock* clock;  // for the pauses
};

// How long a campaign still takes.
struct CampaignEstimate {
  int64_t ns = 0;  // by the last cycle on the target; before there is one by the reference's
  // Preparations come to that, of which no one knows yet how long one takes.
  bool plus_preparation = false;
};

// Told what goes on; everything may be empty.
struct CampaignEvents {
  // An unfinished campaign goes on, of which so many runs are done.
  std::function<void(uint64_t runs_done)> on_resume;
  // Before the first run on the target: so many cycles in all. Again where the first stage of a
  // published score has told how many there are.
  std::function<void(uint64_t cycles, const CampaignEstimate& left)> on_plan;
  // Whenever more is known: after a preparation, the first run of a cycle, a cycle.
  std::function<void(const CampaignEstimate& left)> on_left;
  std::function<void(const std::string& label)> on_run;
  // A cycle was spoiled and will be measured again.
  std::function<void(const RepeatedCycle& cycle)> on_repeat;
  std::function<void(const std::string& label, const ReplayProgress&)> on_progress;
  std::function<void(const std::string& label, const PrepareProgress&)> on_prepare_progress;
};

// All that can be refused without opening the target: the options, the trace (rule 2, too few
// I/Os), what lies in the folder, the report of a measured reference. Makes nothing.
Result<std::shared_ptr<const ScoredTrace>> CheckCampaign(const CampaignOptions& options,
                                                         const std::atomic<bool>& stop);

// The whole procedure of docs/score.md for one target: recording checked and cut into segments,
// reference computed, target brought into its state, cycles of a closed-loop run and a run at max
// speed, costs, score, validity. A run that fails ends it with its error, one that `stop` ended
// makes the report invalid; after either the same call goes on where it was. A rule that is broken
// for good ends it early, and the report says so.
Result<ScoreReport> RunCampaign(const CampaignOptions& options, const CampaignTools& tools,
                                const std::atomic<bool>& stop, const CampaignEvents& events);

// Whether anything of the target was written or read, so that the folder holds something of worth.
bool CampaignTouchedTarget(const std::string& folder);

}  // namespace blktape
