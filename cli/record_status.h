#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "capture/session/live_figures.h"

namespace blktape {

// What `blktape record --status` shows of a running recording: a small file under /run/blktape,
// which is memory, so that showing it touches no disk.
class RecordStatusFile {
 public:
  // `what` describes the recording: source, disks. Where the folder cannot be made (no root), there
  // is no file and everything else works.
  struct What {
    std::string source;
    std::vector<std::string> devices;
  };
  RecordStatusFile(What what, std::string folder = "/run/blktape");
  ~RecordStatusFile();
  RecordStatusFile(const RecordStatusFile&) = delete;
  RecordStatusFile& operator=(const RecordStatusFile&) = delete;

  // `path` is the trace being written.
  void Update(const LiveFigures& figures, const std::string& path);

 private:
  What what_;
  std::string folder_;
  std::string path_;
  uint64_t updates_ = 0;
};

// Asks every running recording for its figures and prints them, as text or as a JSON array.
// kNotFound if none runs.
Status PrintRecordings(bool json, const std::string& folder = "/run/blktape");

// One line of figures: what a terminal shows while it records. Where it does not fit `columns` the
// figures of the least worth are left out; time, I/Os and "DISK FULL" stay.
std::string FigureLine(const LiveFigures& figures, size_t columns = 79);

}  // namespace blktape
