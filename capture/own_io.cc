#include "capture/own_io.h"

#include "base/units.h"

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

bool IsKernelThread(std::string_view comm) {
  return StartsWith(comm, "kworker/") || StartsWith(comm, "jbd2/") || StartsWith(comm, "xfs") ||
         StartsWith(comm, "btrfs-") || StartsWith(comm, "f2fs_");
}

// dm-crypt's, which submits what anybody wrote once it is encrypted.
bool IsRelay(std::string_view comm) { return StartsWith(comm, "dmcrypt_write"); }

}  // namespace

OwnIoJudge::Kind OwnIoJudge::KindOf(const IoRecord& record, std::string_view comm) {
  const bool relayed = IsRelay(comm);
  if (!IsKernelThread(comm) && !relayed) return Kind::kOther;
  if (StartsWith(comm, "jbd2/") || record.op == Op::kFlush) return Kind::kCommit;
  if (record.op != Op::kWrite) return Kind::kOther;
  if ((record.flags & kFlagMeta) == 0) {
    return relayed && (record.flags & kFlagSync) != 0 ? Kind::kRelayedData : Kind::kOther;
  }
  return (record.flags & (kFlagSync | kFlagFua | kFlagPreflush)) != 0 ? Kind::kCommit
                                                                      : Kind::kCheckpoint;
}

bool OwnIoJudge::GoesOn(const Commit& commit, int64_t ns) const {
  if (ns - commit.last_ns > kCommitGapNs || ns - commit.begin_ns > kCommitLongestNs) return false;
  // What somebody else wrote since is committed by what follows.
  return !commit.own || !last_other_ns_ || *last_other_ns_ <= commit.last_ns;
}

bool OwnIoJudge::CommitIsOwn(int64_t ns) {
  const std::optional<SyncInterval> sync = last_sync_(ns);
  if (!sync || ns - sync->begin_ns > kWritebackNs) return false;
  if (sync->end_ns == 0 || ns <= sync->end_ns) return true;
  // What was written before the latest commit went out with that one.
  const bool ours = !commit_ || sync->end_ns >= commit_->begin_ns;
  const bool others = last_other_ns_ && (!commit_ || *last_other_ns_ >= commit_->begin_ns);
  return ours && !others;
}

bool OwnIoJudge::RelayedDataIsOwn(int64_t ns, uint64_t bytes) {
  const std::optional<SyncInterval> sync = last_sync_(ns);
  if (!sync || (sync->end_ns != 0 && ns > sync->end_ns)) return false;
  if (sync->begin_ns != relayed_sync_ns_) {
    relayed_sync_ns_ = sync->begin_ns;
    relayed_left_bytes_ = sync->data_bytes;
  }
  if (bytes > relayed_left_bytes_) return false;
  relayed_left_bytes_ -= bytes;
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
    case Kind::kCheckpoint: {
      const std::optional<SyncInterval> sync = last_sync_(ns);
      const bool ours = sync && ns - sync->begin_ns <= kWritebackNs;
      return ours && !(last_other_ns_ && ns - *last_other_ns_ <= kWritebackNs);
    }
    case Kind::kRelayedData:
      if (RelayedDataIsOwn(ns, record.bytes)) return true;
      last_other_ns_ = ns;
      return false;
    case Kind::kOther:
      if (record.op != Op::kRead) last_other_ns_ = ns;
      return false;
  }
  return false;
}

}  // namespace blktape
