#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "capture/session/capture_session.h"
#include "capture/session/file_series.h"
#include "cli/record_signals.h"

namespace blktape {

struct RecordLoopOptions {
  std::optional<int64_t> duration_ns;
  std::vector<std::string> command;  // empty: none
  // After the command: wait until its I/O has reached the disk, at most this long.
  int64_t settle_ns = 40 * kNanosPerSecond;
  bool live_line = false;   // on standard error
  FileSeriesOptions files;  // SIGHUP asks for the next one
  // What the rest of the recording does not need is given up here, once all is open.
  std::function<void()> after_start;
};

struct RecordLoopResult {
  std::optional<int> command_status;
  bool settled = true;  // false: data of the command may still be on its way to the disk
};

// Drives a session until SIGINT or SIGTERM, the duration, the end of the command or of all disks.
// Does not finish it. Fails with the session's failure, or if the command cannot be run.
Result<RecordLoopResult> RunRecordLoop(CaptureSession* session, RecordSignals* signals,
                                       const RecordLoopOptions& options);

}  // namespace blktape
