#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "format/trace.pb.h"
#include "replay/replayer.h"
#include "replay/target/queue_setting.h"
#include "report/score_report.h"

namespace blktape {

inline constexpr uint64_t kLeastCycles = 3;
inline constexpr uint64_t kLeastCyclesPublished = 5;
inline constexpr uint64_t kMostCycles = 15;
// Of the simulated drive: how many requests it may hold, more than any recording has had.
inline constexpr uint32_t kReferenceDepth = 4096;
// Where the trace does not tell completions there is no order to keep: work is then measured at
// this queue depth, and the rule says so.
inline constexpr uint32_t kDepthWithoutOrder = 32;

struct ScoreSessionOptions {
  std::string trace_path;
  std::string target_path;
  std::map<std::string, std::string> identities;  // as ReplayOptions has them
  std::string folder;                             // exists; result traces are put there
  uint64_t cycles = kLeastCycles;  // that count; at most as many more are spoiled and repeated
  bool until_precise = false;      // go on until the half width is kHalfWidthGoal, or kMostCycles
  bool overwrite = false;
  bool loss_accepted = false;
  std::string reference_folder;  // empty: the simulated drive
  std::string engine = "auto";
  std::string unsupported = "fail";
  std::vector<QueueSetting> queue_settings;  // of the target's disk, during each run
  int64_t pause_ns = 2 * kNanosPerSecond;    // before each run, for the drive to settle
};

// RunReplay of replay/replayer.h, or a fake.
using ReplayFunction =
    std::function<Result<proto::ReplayOutcome>(const ReplayOptions&, const std::atomic<bool>& stop,
                                               const std::function<void(const ReplayProgress&)>&)>;

// Told what goes on; everything may be empty.
struct ScoreSessionEvents {
  // Before the first run on the target, with an estimate of how long all will take.
  std::function<void(int64_t estimated_ns)> on_begin;
  std::function<void(const std::string& label)> on_run;
  // A cycle was spoiled and will be measured again.
  std::function<void(const RepeatedCycle& cycle)> on_repeat;
  std::function<void(const std::string& label, const ReplayProgress&)> on_progress;
};

// The whole procedure of docs/score.md for one target in the state as-is: recording checked and cut
// into segments, reference computed, cycles of a timed run and a run at max speed, costs, score,
// validity. A run that fails ends it with its error; one that `stop` ended makes the report
// invalid. Blocks for about cycles x (the recording's length + the work at max speed).
Result<ScoreReport> RunScoreSession(const ScoreSessionOptions& options,
                                    const ReplayFunction& replay, Clock* clock,
                                    const std::atomic<bool>& stop,
                                    const ScoreSessionEvents& events);

}  // namespace blktape
