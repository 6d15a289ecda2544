#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace blktape {

// How a recording without end is cut into files, and how much of them is kept.
struct RotationOptions {
  std::optional<int64_t> every_ns;  // a multiple of a day ends at local midnight
  std::optional<uint64_t> at_bytes;
  std::optional<uint64_t> keep_bytes;  // of all traces of the series in the folder together

  bool rotates() const { return every_ns || at_bytes; }
};

// Says when the next file is due. Pure.
class RotationClock {
 public:
  // `wall_ns` is when the first file began.
  RotationClock(const RotationOptions& options, int64_t wall_ns);

  // Whether the file is over, which has `file_bytes` now. A wall clock that was set back does not
  // make a file longer than its time by more than the step.
  bool Due(int64_t wall_ns, uint64_t file_bytes) const;
  // A new file has begun.
  void Begin(int64_t wall_ns);

 private:
  RotationOptions options_;
  int64_t end_wall_ns_ = 0;
};

// "nvme0n1_2026-11-23T09-15-00.tape", "3disks_...": what a file of a rotating recording in `folder`
// is called. A name that is taken gets "_2", "_3" ...
std::string RotatedPath(const std::string& folder, const std::vector<std::string>& devices,
                        int64_t wall_ns);

// `path` if neither it nor its .partial exists, else NAME_2.tape, NAME_3.tape ...,
// which are listed after it.
std::string FreePath(const std::string& path);

// The series that the rotating recordings of `devices` belong to. Recordings of several disks are
// one series, whatever the disks, because disks come and go.
std::string SeriesOf(const std::vector<std::string>& devices);

// Removes the oldest finished traces of `series` in `folder` until those that stay, together with
// the one being written (`growing_bytes`), hold at most `keep_bytes`. The newest always stays, and
// so do traces of another series, which another recorder may keep for longer, and what is not named
// as RotatedPath names it. Returns the paths removed.
std::vector<std::string> RemoveOldTraces(const std::string& folder, const std::string& series,
                                         uint64_t keep_bytes, uint64_t growing_bytes);

// Removes the oldest of them, the newest too, until so many bytes are free that were not.
std::vector<std::string> RemoveOldest(const std::string& folder, const std::string& series,
                                      uint64_t bytes);

}  // namespace blktape
