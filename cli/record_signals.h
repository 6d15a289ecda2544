#pragma once

#include <memory>

namespace blktape {

// The signals a recording obeys, taken from the process: SIGINT and SIGTERM end it, SIGUSR1 asks
// for figures, SIGHUP begins a new file; but where there is a terminal it ends the recording, as it
// comes when the terminal goes away, and where it was ignored (nohup) it stays so. One object at a
// time; the handlers of before come back with its end. Made before other threads start, so that
// this thread is the one that gets them. SIGPIPE is ignored from then on for good: what is said at
// the end may find no reader, either.
class RecordSignals {
 public:
  RecordSignals();
  ~RecordSignals();
  RecordSignals(const RecordSignals&) = delete;
  RecordSignals& operator=(const RecordSignals&) = delete;

  // Each returns what came since the last call, and forgets it. SIGINT, SIGTERM, SIGHUP or 0.
  int TakeStop();
  bool TakeHangup();
  bool TakeStatusRequest();
  // Whether the last stop was of a terminal, which reaches the whole foreground job.
  bool stop_was_typed() const;

 private:
  struct Old;
  std::unique_ptr<Old> old_;
};

}  // namespace blktape
