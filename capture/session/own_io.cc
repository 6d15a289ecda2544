#include "capture/session/own_io.h"

#include <algorithm>

#include "base/units.h"
#include "format/process_dictionary.h"

namespace blktape {
namespace {

// /proc/sys/vm: dirty_expire_centisecs 3000 and dirty_writeback_centisecs 500, and some.
constexpr int64_t kWritebackNs = 40 * kNanosPerSecond;
// The I/Os of one commit follow each other.
constexpr int64_t kCommitGapNs = kNanosPerSecond / 4;
// On a slow disk, or if somebody calls fsync all the time, so do commits: what lasts longer is more
// than one, and judged again.
constexpr int64_t kCommitLongestNs = kNanosPerSecond;

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

// "md0_raid1", "md127_raid10", "md_home_raid1".
bool IsRaidThread(std::string_view comm) {
  return StartsWith(comm, "md") && comm.find("_raid") != std::string_view::npos;
}

bool WritesMetadataOnly(std::string_view comm) {
  return StartsWith(comm, "xfsaild/") || StartsWith(comm, "btrfs-transacti");
}

// Of a work queue that hands down writes and flushes, the thread that takes over when no worker can
// be had at once. Linux 6.1 calls it by its queue, later ones kworker/R- and that.
bool IsRescuer(std::string_view comm) {
  return comm == "md" || comm == "kblockd" || comm == "writeback" || StartsWith(comm, "kdmflush");
}

bool IsKernelThread(std::string_view comm) {
  return StartsWith(comm, kKernelWorker) || IsRescuer(comm) || StartsWith(comm, "jbd2/") ||
         StartsWith(comm, "xfs") || StartsWith(comm, "btrfs-") || StartsWith(comm, "f2fs_") ||
         IsRaidThread(comm);
}

// Submits what anybody wrote: dm-crypt's once it is encrypted, that of a mirror what it had to hold
// back.
bool IsRelay(std::string_view comm) {
  return StartsWith(comm, "dmcrypt_write") ||
         (IsRaidThread(comm) && comm.find("_raid1") != std::string_view::npos);
}

}  // namespace

OwnIoJudge::Kind OwnIoJudge::KindOf(const IoRecord& record, std::string_view comm) {
  const bool relayed = IsRelay(comm);
  if (!IsKernelThread(comm) && !relayed) return Kind::kOther;
  if (StartsWith(comm, "jbd2/") || record.op == Op::kFlush) return Kind::kCommit;
  if (record.op != Op::kWrite) return Kind::kOther;
  const bool is_barrier = (record.flags & (kFlagFua | kFlagPreflush)) != 0;
  const bool is_sync = (record.flags & kFlagSync) != 0;
  // The mirrors of md (Linux 6.1) do not hand down that a write is metadata.
  const bool is_meta =
      (record.flags & kFlagMeta) != 0 || WritesMetadataOnly(comm) || (is_barrier && !relayed);
  if (!is_meta) return relayed && is_sync ? Kind::kRelayedData : Kind::kOther;
  return is_sync || is_barrier ? Kind::kCommit : Kind::kCheckpoint;
}

bool OwnIoJudge::GoesOn(const Commit& commit, int64_t ns) const {
  if (ns - commit.last_ns > kCommitGapNs || ns - commit.begin_ns > kCommitLongestNs) return false;
  // What somebody else wrote since is committed by what follows.
  return !commit.own || !last_other_ns_ || *last_other_ns_ <= commit.last_ns;
}

bool OwnIoJudge::CommitIsOwn(int64_t ns) {
  const std::optional<SyncInterval> sync = last_sync_(ns);
  if (!sync) return false;
  if (sync->end_ns == 0 || ns <= sync->end_ns) return true;
  if (last_other_ns_ && (!commit_ || *last_other_ns_ >= commit_->begin_ns)) return false;
  const int64_t age_ns = ns - sync->begin_ns;
  // What was written before the latest commit went out with that one.
  const bool is_first = !commit_ || sync->end_ns >= commit_->begin_ns;
  if (is_first) return age_ns <= kWritebackNs;
  return commit_->own && age_ns <= further_commits_ns_;
}

bool OwnIoJudge::CheckpointIsOwn(int64_t ns) const {
  const std::optional<SyncInterval> sync = last_sync_(ns);
  const bool ours = sync && ns - sync->begin_ns <= std::max(kWritebackNs, further_commits_ns_);
  return ours && !(last_other_ns_ && ns - *last_other_ns_ <= kWritebackNs);
}

bool OwnIoJudge::RelayedDataIsOwn(uint32_t device, int64_t ns, uint64_t bytes) {
  const std::optional<SyncInterval> sync = last_sync_(ns);
  if (!sync || (sync->end_ns != 0 && ns > sync->end_ns)) return false;
  if (sync->begin_ns != relayed_sync_ns_) {
    relayed_sync_ns_ = sync->begin_ns;
    relayed_bytes_.clear();
  }
  uint64_t& seen_bytes = relayed_bytes_[device];
  if (bytes > sync->data_bytes - seen_bytes) return false;
  seen_bytes += bytes;
  return true;
}

bool OwnIoJudge::IsOwn(const IoRecord& record, std::string_view comm) {
  if (!holds_trace_(record.device) || !record.arrival_ns()) return false;
  const int64_t ns = *record.arrival_ns();
  switch (KindOf(record, comm)) {
    case Kind::kCommit:
      if (!commit_ || !GoesOn(*commit_, ns)) commit_ = Commit{ns, ns, CommitIsOwn(ns)};
      commit_->last_ns = ns;
      return commit_->own;
    case Kind::kCheckpoint:
      return CheckpointIsOwn(ns);
    case Kind::kRelayedData:
      if (RelayedDataIsOwn(record.device, ns, record.bytes)) return true;
      last_other_ns_ = ns;
      return false;
    case Kind::kOther:
      if (record.op != Op::kRead) last_other_ns_ = ns;
      return false;
  }
  return false;
}

}  // namespace blktape
