#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "capture/session/capture_session.h"
#include "capture/session/trace_rotation.h"

namespace blktape {

struct FileSeriesOptions {
  RotationOptions rotation;
  std::string folder;  // of rotated traces; empty where there is one file
  std::string series;  // SeriesOf its disks: others' traces in the folder are not removed
  // Where the next file goes. Empty function: there is none.
  std::function<std::string()> next_path;
};

// The files of a recording without end: begins the next one when it is due, tries again later where
// that fails, and removes the oldest when all are larger than they may be or their disk is nearly
// full. One thread, that of the session, which outlives it.
class FileSeries {
 public:
  // The first file began at `wall_ns`.
  FileSeries(CaptureSession* session, FileSeriesOptions options, int64_t wall_ns);

  // Every turn of the session. `now_ns` is of the monotonic clock; `asked`: somebody wants a new
  // file now. True: one has begun.
  bool Turn(int64_t now_ns, int64_t wall_ns, bool asked);

  // Things a person should know, since the last call: what was removed, why there is no new file.
  std::vector<std::string> TakeNews();

 private:
  bool Rotate(int64_t now_ns, int64_t wall_ns, bool asked);
  void RemoveBeyondQuota(int64_t now_ns);
  void RemoveForSpace(int64_t now_ns);
  bool removes() const { return !options_.folder.empty() && options_.rotation.keep_bytes; }

  CaptureSession* session_;
  FileSeriesOptions options_;
  RotationClock clock_;
  std::vector<std::string> news_;
  int64_t next_rotate_ns_ = 0;
  int64_t next_quota_ns_ = 0;
  int64_t next_space_ns_ = 0;
};

}  // namespace blktape
