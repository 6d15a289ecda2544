#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/status.h"
#include "capture/session/recording_file.h"
#include "capture/session/trace_file.h"
#include "format/trace.pb.h"

namespace blktape {

// Finishes the traces that a recording leaves for the next one, on a thread of its own: waiting for
// the disk must not hold up the reading of the kernel's rings. Then it rewrites them with full
// frames, slowly and last in line, as this is I/O amid what is recorded. Its methods are called by
// one thread.
class FileFinisher {
 public:
  struct Finished {
    std::string path;
    Status status;
    uint64_t more_lost =
        0;  // events that its end found missing, beyond its loss_tally() when given
  };

  // How fast it writes while it rewrites.
  static constexpr uint64_t kCompactBytesPerS = 8 * 1024 * 1024;
  // `on_thread`: called by its thread as it begins; may be empty.
  explicit FileFinisher(std::function<void()> on_thread = {},
                        uint64_t compact_bytes_per_s = kCompactBytesPerS)
      : on_thread_(std::move(on_thread)), compact_bytes_per_s_(compact_bytes_per_s) {}
  // Waits as WaitForAll.
  ~FileFinisher();

  // Whether one more file may be given: few wait, or the disk is the one that cannot keep up.
  bool has_room() const;
  // Takes over a file that gets no more records.
  void Give(std::unique_ptr<RecordingFile> file, const proto::Summary& summary);
  // What has got its name, or failed to, since the last call.
  std::vector<Finished> Take();
  // Until all are finished and rewritten, now as fast as it goes. No more files may follow.
  void WaitForAll();

  // The kernel's ids of threads of which I/O may still be under way at `now_ns`: its own, and those
  // that wrote the files. One that ended long ago may be somebody else's id by now.
  std::vector<uint32_t> ThreadIds(int64_t now_ns) const;
  // As TraceFile::LastSync, of all it has written or been given.
  std::optional<SyncInterval> LastSync(int64_t ns) const;

 private:
  class PacedSink;
  struct Job {
    std::unique_ptr<RecordingFile> file;
    proto::Summary summary;
    uint64_t lost_events = 0;
  };
  struct Writer {
    uint32_t thread_id = 0;
    int64_t ended_ns = 0;
  };

  void Run();
  // The files that wait for their end; with `lock` held on entry and exit, not in between.
  void FinishWaiting(std::unique_lock<std::mutex>* lock);
  // Between two pieces of a file that is rewritten: what waits goes first.
  void Pause(int64_t until_ns);
  void RememberSync(const SyncInterval& sync);

  const std::function<void()> on_thread_;
  const uint64_t compact_bytes_per_s_;
  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable done_;
  std::deque<Job> waiting_;  // the first may be the one that is being finished
  std::deque<std::unique_ptr<RecordingFile>> to_compact_;
  std::vector<Finished> finished_;
  std::vector<Writer> ended_writers_;
  std::deque<SyncInterval> syncs_;
  bool stop_ = false;
  uint32_t thread_id_ = 0;
  std::thread thread_;  // from the first file on, with no more rights than who gave it
};

}  // namespace blktape
