#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "capture/session/trace_file.h"
#include "format/io_record.h"

namespace blktape {

// Tells the I/O that the recorder's own trace file causes from that of the machine, beyond what the
// recorder's threads submit themselves: the file system's journal and its metadata, written later
// by kernel threads that do not say for whom. Without this, recording the disk that holds the trace
// never comes to rest: a frame written makes a commit, the commit is recorded and makes a frame.
//
// Data of the trace goes out under the writing thread's id. So a kernel thread's data write is
// somebody else's, and what remains to be judged is the commit (journal blocks, its flushes) and
// the checkpoint (metadata at its place):
// - a commit is own if it was queued while the recorder waited for its fdatasync, or if nobody else
//   wrote to this disk since the commit before it, and the recorder did; where a commit makes the
//   file system commit once more later (SetFurtherCommits), also if that before it was own;
// - a checkpoint is own if the recorder wrote within the last 40 s (the kernel's writeback age plus
//   its interval) and nobody else did; later if it may belong to a further commit.
// The superblock of an md array, which says whether writes are under way, is like a commit.
// dm-crypt submits everybody's writes by a thread of its own, md RAID 1 and 10 some of them; a
// source that follows layers (LiveSource::SetLayers) knows most of them by the thread that wrote.
// Of synchronous data writes to a disk that such a thread is left with, those queued while the
// recorder waited for its fdatasync are own, the first ones, up to the bytes that fdatasync had to
// write: as many as the recorder's own, if not always the same ones. A mirror of md does not hand
// down what is metadata: there a write with FUA or PREFLUSH by a kernel thread is a commit, but a
// checkpoint that ext4 leaves to writeback passes for somebody's data. RAID 5 and 6, which read,
// and write other data than they were given, are not told at all. A change of metadata alone by
// somebody else (touch, mkdir) that falls into such a time is swallowed with ours: it would have
// gone out with the same blocks.
//
// Pure; records come about in order of arrival. One thread.
class OwnIoJudge {
 public:
  // `holds_trace`: whether the disk of that index holds the trace; I/O of others is never judged.
  // `last_sync`: the recorder's last write and fdatasync that began at or before a time, absent if
  // none is remembered.
  OwnIoJudge(std::function<bool(uint32_t device)> holds_trace,
             std::function<std::optional<SyncInterval>(int64_t ns)> last_sync)
      : holds_trace_(std::move(holds_trace)), last_sync_(std::move(last_sync)) {}

  // For how long after the recorder's last write its file system may still commit because of an
  // earlier commit, without any news; 0: it never does.
  void SetFurtherCommits(int64_t ns) { further_commits_ns_ = ns; }

  // Whether `record`, submitted by a thread called `comm`, is the trace file's doing.
  bool IsOwn(const IoRecord& record, std::string_view comm);

 private:
  enum class Kind { kCommit, kCheckpoint, kRelayedData, kOther };
  struct Commit {
    int64_t begin_ns = 0;
    int64_t last_ns = 0;
    bool own = false;
  };

  static Kind KindOf(const IoRecord& record, std::string_view comm);
  // Whether an I/O at `ns` is still of `commit`.
  bool GoesOn(const Commit& commit, int64_t ns) const;
  bool CommitIsOwn(int64_t ns);
  bool CheckpointIsOwn(int64_t ns) const;
  bool RelayedDataIsOwn(uint32_t device, int64_t ns, uint64_t bytes);

  std::function<bool(uint32_t)> holds_trace_;
  std::function<std::optional<SyncInterval>(int64_t)> last_sync_;
  std::optional<int64_t> last_other_ns_;  // somebody else's write
  std::optional<Commit> commit_;          // the latest
  int64_t further_commits_ns_ = 0;
  // Of the latest fdatasync during which relayed data was seen: by disk, what has been seen of it.
  int64_t relayed_sync_ns_ = 0;
  std::unordered_map<uint32_t, uint64_t> relayed_bytes_;
};

}  // namespace blktape
