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
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/byte_stream.h"
#include "base/status.h"
#include "format/partial_file.h"

namespace blktape {

// When a TraceFile wrote and waited for stable storage, on CLOCK_MONOTONIC; `end_ns` is 0 while it
// still does.
struct SyncInterval {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  // What it had to write of the file's data, in whole blocks of the file system.
  uint64_t data_bytes = 0;
};

struct TraceFileOptions {
  // Space is taken from the file system this far ahead (less on a small one), so that appending
  // changes little metadata and that a trace can be finished on a full disk.
  uint64_t reserve_bytes = 4 * 1024 * 1024;
  // The disk counts as full when fewer bytes than this are free. Absent: 1 % of it, at most 1 GiB.
  std::optional<uint64_t> leave_free_bytes;
  // Bytes waiting to be written; more makes Write wait.
  size_t queue_bytes = 8 * 1024 * 1024;
  // Called by the writing thread as it begins; may be empty.
  std::function<void()> on_thread;
};

// The file a live recording is written to, as `PATH.partial` until it is finished. A thread of its
// own writes and syncs, so that a slow disk does not hold up the reading of the kernel's rings, and
// so that what is written goes to the disk under one known thread id, by which a recording of this
// very disk can leave it out. A full disk is waited for: what has been queued stays queued. Its
// methods are called by one thread, save those marked.
class TraceFile : public ByteSink {
 public:
  // kAlreadyExists if PATH or PATH.partial exists, kResourceExhausted if the disk is full already.
  // Mode 0600.
  static Result<std::unique_ptr<TraceFile>> Create(const std::string& path,
                                                   const TraceFileOptions& options = {});
  // Writes what is queued as far as there is room; PATH.partial stays.
  ~TraceFile() override;

  // Queues; waits while the queue is full and the disk is not. Fails with the first failure of the
  // disk other than being full.
  Status Write(std::span<const std::byte> bytes) override;
  Status Sync() override;
  // Asks for a Sync and does not wait for it.
  void SyncSoon();
  std::string_view name() const override { return path_; }

  // From here on the reserve may be used: what follows is what finishes the trace.
  void UseReserve();

  // Writes all, into the reserve if need be, cuts the file to its length, syncs and gives it its
  // name. Last call. kResourceExhausted: the disk is full, PATH.partial holds what fitted.
  Status Finish();

  // How many bytes should become free, or the disk is soon full: what is free beyond that which is
  // left to others falls so far short of 64 MiB or of a 50th of a smaller file system. Any thread,
  // before Finish.
  uint64_t LackingBytes() const;

  // No room: nothing is being written until there is. Any thread.
  bool full() const { return full_.load(); }
  // The kernel's id of the writing thread.
  uint32_t thread_id() const { return thread_id_.load(); }
  // Whether the writing thread could give up the rights of root; if not, it writes all the same,
  // and blocks that a file system keeps for root may be taken. Any thread.
  const Status& rights_dropped() const { return rights_dropped_; }
  // The last write and sync that began at or before `ns`. Any thread. Remembers the last 64. That
  // the file was made counts as the first: it changes the folder, and nothing has been synced yet.
  std::optional<SyncInterval> LastSync(int64_t ns) const;

  // The whole queue, in bytes. Any thread.
  size_t queued_bytes() const;

 private:
  TraceFile(PartialFile file, std::string path, int64_t made_ns, const TraceFileOptions& options);

  void Run();
  // With `lock` held on entry and exit; released while the disk works.
  void WriteOne(std::unique_lock<std::mutex>* lock);
  void SyncNow(std::unique_lock<std::mutex>* lock);
  // Of the blocks that hold what was written since the last sync.
  uint64_t UnsyncedBlockBytes() const;
  // Free bytes of the file system beyond those that are left to others; absent: not known.
  std::optional<uint64_t> FreeBytes() const;
  bool HasRoom(uint64_t end_bytes);
  Status Put(std::span<const std::byte> bytes, uint64_t offset, uint64_t* done) const;

  std::optional<PartialFile> file_;  // absent once it has its name
  const int fd_;                     // its own
  std::string path_;
  TraceFileOptions options_;

  mutable std::mutex mutex_;
  std::condition_variable work_;  // for the writing thread
  std::condition_variable done_;  // for callers that wait
  std::deque<std::vector<std::byte>> queue_;
  size_t queued_bytes_ = 0;
  uint64_t syncs_wanted_ = 0;
  uint64_t syncs_done_ = 0;
  bool stop_ = false;  // write what is there, then end
  bool use_reserve_ = false;
  Status status_;
  std::deque<SyncInterval> syncs_;

  uint64_t written_bytes_ = 0;    // the writing thread's
  uint64_t synced_bytes_ = 0;     // likewise
  uint64_t allocated_bytes_ = 0;  // likewise
  bool can_allocate_ = true;      // likewise
  bool name_synced_ = false;      // likewise
  std::atomic<bool> full_{false};
  std::atomic<uint32_t> thread_id_{0};
  Status rights_dropped_;  // set before thread_id_ is, then left alone
  std::thread thread_;
};

}  // namespace blktape
