#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "replay/prepare/steady_state.h"
#include "replay/replayer.h"

namespace blktape {

// How to bring a target into a known state before a replay (docs/score.md).
struct PrepareOptions {
  enum class State {
    kUsed,   // filled twice in sequence, then random 4 KiB writes until steady
    kFresh,  // discarded, then writes every block that the trace reads before it writes
  };
  State state = State::kUsed;
  // Target, engine, overwrite, and queue settings, which stay in force from the first I/O to the
  // end of the idle time. Also the trace, or records, with mapping and remapping, for kFresh;
  // without either kFresh only discards.
  ReplayOptions replay;
  std::string target_path;
  std::optional<uint64_t> span_bytes;  // from the target's start; absent: the whole target
  uint32_t fill_passes = 2;
  int64_t round_ns = 60'000'000'000;  // of random writes
  uint32_t max_rounds = 25;
  int64_t idle_ns = 60'000'000'000;  // at the end
  // File that records the progress, so that a stopped preparation can be resumed. Removed at the
  // end. Empty: not resumable.
  std::string progress_path;
};

struct PrepareProgress {
  std::string phase;    // "fill 1 of 2", "random writes, round 3", "idle"
  double fraction = 0;  // of the phase
  uint64_t bytes_per_second = 0;
  // How long the preparation still takes at the least; absent where nobody knows the speed of what
  // follows.
  std::optional<int64_t> least_left_ns;
};

// So many bytes are to be moved at this speed, and then follows what takes its time at any speed.
// Absent: the speed is not known yet.
std::optional<int64_t> LeastLeftNs(uint64_t bytes, uint64_t bytes_per_second, int64_t then_ns);

struct PrepareReport {
  bool resumed = false;
  int64_t took_ns = 0;  // this call
  uint64_t filled_bytes = 0;
  uint64_t discarded_bytes = 0;
  uint64_t prefilled_bytes = 0;     // kFresh
  std::vector<double> rounds_iops;  // kUsed
  SteadyWindow window;              // of the last five rounds
  bool steady = false;              // kUsed; a run is invalid if the drive is not steady
  // As in a replay: "sdb scheduler: mq-deadline -> none"; and what was not restored and why.
  std::vector<std::string> settings_changed;
  std::vector<std::string> settings_not_restored;
};

// Runs a preparation and blocks until it is done. kInvalidArgument: queue settings for a file.
// kCancelled when `stop` becomes true: run again with the same progress_path to resume.
Result<PrepareReport> RunPrepare(const PrepareOptions& options, const std::atomic<bool>& stop,
                                 const std::function<void(const PrepareProgress&)>& progress);

}  // namespace blktape
