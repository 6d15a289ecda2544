#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/io_record.h"
#include "format/trace.pb.h"

namespace blktape {

// The blktape program as a user runs it. Ended by SIGKILL if the test leaves it running.
class Recorder {
 public:
  // Runs it with these words, beginning with the verb; `prefix` comes before the program
  // ("setpriv", ...). `folder` takes its output.
  Recorder(const std::string& folder, std::vector<std::string> words,
           std::vector<std::string> prefix = {});
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Returns once it says that it records; false if it ended before.
  bool WaitUntilRecording();
  // Returns once standard error holds `text`; false if it ended before or took 30 s.
  bool WaitUntilItSays(const std::string& text);
  void Signal(int signal) const;
  // Its exit status; 128 + N for signal N.
  int Wait();

  std::string out() const;  // standard output so far
  std::string err() const;
  pid_t pid() const { return pid_; }

 private:
  std::string out_path_;
  std::string err_path_;
  pid_t pid_ = -1;
  std::optional<int> status_;
};

// A whole trace in memory.
struct LoadedTrace {
  proto::Header header;
  std::vector<IoRecord> ios;
  std::vector<std::string> names;  // of the process of each, empty where absent
  std::vector<proto::Loss> losses;
  std::vector<proto::Mark> marks;
  std::vector<proto::ClockAnchor> anchors;
  std::optional<proto::Summary> summary;

  // Those of processes of that name.
  std::vector<IoRecord> By(const std::string& process) const;
  uint64_t LossCount(proto::LossReason reason) const;
};
Result<LoadedTrace> LoadTrace(const std::string& path);

}  // namespace blktape
