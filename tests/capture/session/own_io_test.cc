#include "capture/session/own_io.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "capture/session/trace_file.h"
#include "format/io_record.h"

namespace blktape {
namespace {

constexpr int64_t kSecond = kNanosPerSecond;
constexpr int64_t kMilli = kNanosPerMilli;

class OwnIoJudgeTest : public ::testing::Test {
 protected:
  void Sync(int64_t begin_ns, int64_t end_ns, uint64_t data_bytes = 4096) {
    syncs_.push_back({begin_ns, end_ns, data_bytes});
  }

  bool Judge(int64_t ns, std::string_view comm, Op op, uint32_t flags, uint32_t device = 0,
             uint64_t bytes = 4096) {
    IoRecord record;
    record.bytes = bytes;
    record.device = device;
    record.op = op;
    record.flags = flags;
    record.queue_ns = ns;
    return judge_.IsOwn(record, comm);
  }
  bool Commit(int64_t ns) { return Judge(ns, "jbd2/sda2-8", Op::kWrite, kFlagSync | kFlagMeta); }
  bool Checkpoint(int64_t ns) {
    return Judge(ns, "kworker/u16:3-flush-8:0", Op::kWrite, kFlagMeta);
  }
  bool BackgroundData(int64_t ns) { return Judge(ns, "kworker/u16:3-flush-8:0", Op::kWrite, 0); }

  std::vector<SyncInterval> syncs_;
  OwnIoJudge judge_{[](uint32_t device) { return device <= 1; },
                    [this](int64_t ns) -> std::optional<SyncInterval> {
                      std::optional<SyncInterval> last;
                      for (const SyncInterval& sync : syncs_) {
                        if (sync.begin_ns <= ns) last = sync;
                      }
                      return last;
                    }};
};

TEST_F(OwnIoJudgeTest, ACommitWhileTheRecorderWaitsForItIsOwn) {
  Sync(10 * kSecond, 10 * kSecond + 20 * kMilli);
  EXPECT_TRUE(Commit(10 * kSecond + 5 * kMilli));
}

TEST_F(OwnIoJudgeTest, ACommitWhileTheSyncStillRunsIsOwn) {
  Sync(10 * kSecond, 0);
  EXPECT_TRUE(Commit(10 * kSecond + 5 * kMilli));
}

TEST_F(OwnIoJudgeTest, TheTimedCommitAfterAnOwnWriteOnAnIdleDiskIsOwn) {
  Sync(10 * kSecond, 10 * kSecond + kMilli);
  EXPECT_TRUE(Commit(14 * kSecond));
  EXPECT_TRUE(Judge(14 * kSecond + kMilli, "jbd2/sda2-8", Op::kFlush, 0));
}

TEST_F(OwnIoJudgeTest, ACommitWithoutAnyOwnWriteIsSomebodyElses) {
  EXPECT_FALSE(Commit(14 * kSecond));
  EXPECT_FALSE(Checkpoint(44 * kSecond));
}

TEST_F(OwnIoJudgeTest, ACommitAfterSomebodyElsesDataIsTheirs) {
  Sync(10 * kSecond, 10 * kSecond + kMilli);
  EXPECT_FALSE(BackgroundData(12 * kSecond));
  EXPECT_FALSE(Commit(14 * kSecond));
}

TEST_F(OwnIoJudgeTest, SomebodyElsesReadsMakeNoCommit) {
  Sync(10 * kSecond, 10 * kSecond + kMilli);
  EXPECT_FALSE(Judge(12 * kSecond, "cat", Op::kRead, 0));
  EXPECT_TRUE(Commit(14 * kSecond));
}

TEST_F(OwnIoJudgeTest, TheWholeOfACommitIsJudgedAsItsBeginning) {
  Sync(10 * kSecond, 10 * kSecond + kMilli);
  EXPECT_FALSE(BackgroundData(12 * kSecond));
  EXPECT_FALSE(Commit(14 * kSecond));
  Sync(14 * kSecond + kMilli, 14 * kSecond + 2 * kMilli);
  EXPECT_FALSE(Commit(14 * kSecond + 3 * kMilli));
}

TEST_F(OwnIoJudgeTest, WhoWritesAndSyncsWithoutPauseBehindAnOwnCommitIsNotTakenForIt) {
  Sync(10 * kSecond, 10 * kSecond + 2 * kMilli);
  EXPECT_TRUE(Commit(10 * kSecond + kMilli));
  for (int64_t ns = 10 * kSecond + 10 * kMilli; ns < 12 * kSecond; ns += 10 * kMilli) {
    EXPECT_FALSE(Judge(ns, "mysqld", Op::kWrite, kFlagSync));
    EXPECT_FALSE(Commit(ns + kMilli)) << ns;
  }
}

TEST_F(OwnIoJudgeTest, OwnCommitsAreKnownAlsoIfSomebodyElsesWentBeforeWithoutPause) {
  // On a slow disk one commit follows the other; otherwise each own one would make the next.
  EXPECT_FALSE(BackgroundData(9 * kSecond));
  EXPECT_FALSE(Commit(10 * kSecond));
  for (int64_t ns = 10 * kSecond + 200 * kMilli; ns < 20 * kSecond; ns += 200 * kMilli) {
    Sync(ns - 10 * kMilli, ns + 140 * kMilli);
    const bool own = Commit(ns);
    if (ns > 11 * kSecond) {
      EXPECT_TRUE(own) << ns;
    }
  }
}

TEST_F(OwnIoJudgeTest, WhatWasWrittenBeforeALaterCommitDoesNotExplainIt) {
  Sync(10 * kSecond, 10 * kSecond + kMilli);
  EXPECT_TRUE(Commit(14 * kSecond));
  EXPECT_FALSE(Commit(19 * kSecond));
}

TEST_F(OwnIoJudgeTest, ACheckpointIsOwnAsLongAsNobodyElseWrote) {
  Sync(10 * kSecond, 10 * kSecond + kMilli);
  EXPECT_TRUE(Commit(14 * kSecond));
  EXPECT_TRUE(Checkpoint(45 * kSecond));
  EXPECT_FALSE(Checkpoint(51 * kSecond)) << "more than 40 s after the last own write";
}

TEST_F(OwnIoJudgeTest, ACheckpointAfterSomebodyElsesWriteIsTheirs) {
  EXPECT_FALSE(Judge(9 * kSecond, "mv", Op::kWrite, 0));
  Sync(10 * kSecond, 10 * kSecond + kMilli);
  EXPECT_FALSE(Checkpoint(45 * kSecond));
}

TEST_F(OwnIoJudgeTest, OfEncryptedDataAsMuchIsOwnAsTheSyncHadToWrite) {
  Sync(10 * kSecond, 10 * kSecond + 20 * kMilli, /*data_bytes=*/12'288);
  const auto encrypted = [this](int64_t ns, uint64_t bytes) {
    return Judge(ns, "dmcrypt_write/2", Op::kWrite, kFlagSync, /*device=*/0, bytes);
  };
  EXPECT_FALSE(encrypted(10 * kSecond - kMilli, 4096)) << "before it";
  EXPECT_TRUE(encrypted(10 * kSecond + kMilli, 8192));
  EXPECT_FALSE(encrypted(10 * kSecond + 2 * kMilli, 8192)) << "4,096 bytes are left";
  EXPECT_TRUE(encrypted(10 * kSecond + 3 * kMilli, 4096));
  EXPECT_FALSE(encrypted(10 * kSecond + 4 * kMilli, 4096)) << "nothing is left";
  EXPECT_FALSE(encrypted(10 * kSecond + 21 * kMilli, 4096)) << "after it";
}

TEST_F(OwnIoJudgeTest, EachDiskOfAMirrorGetsWhatTheSyncHadToWrite) {
  Sync(10 * kSecond, 10 * kSecond + 20 * kMilli, /*data_bytes=*/8192);
  const auto mirrored = [this](uint32_t device, uint64_t bytes) {
    return Judge(10 * kSecond + kMilli, "md0_raid1", Op::kWrite, kFlagSync, device, bytes);
  };
  EXPECT_TRUE(mirrored(0, 8192));
  EXPECT_TRUE(mirrored(1, 8192));
  EXPECT_FALSE(mirrored(0, 512)) << "nothing is left";
  EXPECT_FALSE(mirrored(2, 512)) << "a disk without the trace";
}

TEST_F(OwnIoJudgeTest, TheSuperblockOfAnArrayIsJudgedAsACommit) {
  const uint32_t flags = kFlagSync | kFlagFua | kFlagPreflush | kFlagMeta;
  const auto superblock = [&](int64_t ns) {
    return Judge(ns, "md127_raid10", Op::kWrite, flags, /*device=*/0, 512);
  };
  Sync(10 * kSecond, 10 * kSecond + 20 * kMilli);
  EXPECT_TRUE(superblock(10 * kSecond + kMilli)) << "writes are under way";
  EXPECT_TRUE(superblock(10 * kSecond + 220 * kMilli)) << "no more";
  EXPECT_FALSE(Judge(12 * kSecond, "mysqld", Op::kWrite, kFlagSync));
  EXPECT_FALSE(superblock(12 * kSecond + kMilli));
  EXPECT_FALSE(superblock(12 * kSecond + 220 * kMilli));
}

// Where no worker can be had at once, as on a busy machine.
TEST_F(OwnIoJudgeTest, WhatTheRescuerOfAWorkQueueHandsDownIsJudgedAsAWorkersOwn) {
  Sync(10 * kSecond, 10 * kSecond + 9 * kMilli);
  EXPECT_TRUE(Judge(10 * kSecond + kMilli, "md", Op::kFlush, kFlagSync));
  EXPECT_TRUE(Judge(10 * kSecond + 2 * kMilli, "kblockd", Op::kFlush, 0));
  EXPECT_TRUE(Judge(10 * kSecond + 3 * kMilli, "kdmflush/254:0", Op::kFlush, kFlagSync));
  EXPECT_TRUE(Judge(14 * kSecond, "kworker/0:0", Op::kWrite, kFlagSync | kFlagFua));
  EXPECT_TRUE(Judge(40 * kSecond, "writeback", Op::kWrite, kFlagMeta));
  EXPECT_FALSE(Judge(41 * kSecond, "writeback", Op::kWrite, 0)) << "somebody's data";
  EXPECT_FALSE(Judge(42 * kSecond, "md", Op::kFlush, kFlagSync));
}

TEST_F(OwnIoJudgeTest, BelowAMirrorMetadataIsToldByItsThreadAndItsBarriers) {
  Sync(10 * kSecond, 10 * kSecond + kMilli);
  EXPECT_TRUE(Judge(14 * kSecond, "kworker/0:0", Op::kWrite, kFlagSync | kFlagFua)) << "a log";
  EXPECT_TRUE(Judge(14 * kSecond + kMilli, "xfsaild/md0", Op::kWrite, 0));
  EXPECT_FALSE(BackgroundData(16 * kSecond));
  EXPECT_FALSE(Judge(18 * kSecond, "kworker/0:0", Op::kWrite, kFlagSync | kFlagFua));
  EXPECT_FALSE(Judge(18 * kSecond + kMilli, "xfsaild/md0", Op::kWrite, 0));
}

TEST_F(OwnIoJudgeTest, WhereACommitMakesTheNextTheNextIsOwnAsWell) {
  judge_.SetFurtherCommits(100 * kSecond);
  Sync(10 * kSecond, 10 * kSecond + kMilli);
  EXPECT_TRUE(Commit(30 * kSecond));
  EXPECT_TRUE(Commit(60 * kSecond)) << "the log is covered";
  EXPECT_TRUE(Checkpoint(61 * kSecond));
  EXPECT_TRUE(Commit(90 * kSecond)) << "once more";
  EXPECT_TRUE(Checkpoint(91 * kSecond));
  EXPECT_FALSE(Commit(120 * kSecond)) << "more than 100 s after the last own write";
  Sync(121 * kSecond, 121 * kSecond + kMilli);
  EXPECT_TRUE(Commit(150 * kSecond));
  EXPECT_FALSE(BackgroundData(170 * kSecond));
  EXPECT_FALSE(Commit(180 * kSecond)) << "somebody else wrote";
  EXPECT_FALSE(Commit(210 * kSecond)) << "the next of that";
}

TEST_F(OwnIoJudgeTest, AnEncryptedCommitIsJudgedAsAnyOther) {
  Sync(10 * kSecond, 10 * kSecond + 20 * kMilli);
  EXPECT_TRUE(Judge(10 * kSecond + kMilli, "dmcrypt_write/2", Op::kWrite, kFlagSync | kFlagMeta));
  EXPECT_FALSE(Judge(12 * kSecond, "dmcrypt_write/2", Op::kWrite, 0)) << "somebody's data";
  EXPECT_FALSE(Judge(14 * kSecond, "dmcrypt_write/2", Op::kWrite, kFlagSync | kFlagMeta));
}

TEST_F(OwnIoJudgeTest, RecordingTheDiskOfTheTraceComesToRest) {
  // Somebody writes once. A file system in small: a sync of the recorder's is followed by a commit
  // within 5 s and a checkpoint 30 s later; what is not own makes the recorder sync.
  EXPECT_FALSE(BackgroundData(0));
  std::vector<int64_t> commits = {5 * kSecond};
  std::vector<int64_t> checkpoints = {35 * kSecond};
  int64_t last_not_own_ns = 0;
  for (int64_t ns = kMilli; ns < 600 * kSecond; ns += kSecond) {
    bool own = true;
    while (!commits.empty() && commits.front() <= ns) {
      own = Commit(ns) && own;
      commits.erase(commits.begin());
    }
    while (!checkpoints.empty() && checkpoints.front() <= ns) {
      own = Checkpoint(ns + kMilli) && own;
      checkpoints.erase(checkpoints.begin());
    }
    if (own && ns != kMilli) continue;
    last_not_own_ns = ns;
    Sync(ns + 500 * kMilli, ns + 501 * kMilli);
    commits.push_back(ns + 5 * kSecond);
    checkpoints.push_back(ns + 35 * kSecond);
  }
  EXPECT_LE(last_not_own_ns, 40 * kSecond);
}

TEST_F(OwnIoJudgeTest, UserProcessesAndOtherDisksAreNeverOwn) {
  Sync(10 * kSecond, 0);
  EXPECT_FALSE(Judge(11 * kSecond, "sqlite3", Op::kFlush, 0));
  EXPECT_FALSE(Judge(11 * kSecond, "sqlite3", Op::kWrite, kFlagSync | kFlagMeta));
  EXPECT_FALSE(Judge(11 * kSecond, "jbd2/sdb1-8", Op::kWrite, kFlagSync, /*device=*/2));
}

TEST_F(OwnIoJudgeTest, OtherFileSystemsAreToldByTheirFlags) {
  Sync(10 * kSecond, 10 * kSecond + kMilli);
  EXPECT_TRUE(Judge(14 * kSecond, "kworker/1:1H-xfs-log/sda2", Op::kWrite,
                    kFlagMeta | kFlagSync | kFlagPreflush | kFlagFua));
  EXPECT_TRUE(Judge(40 * kSecond, "xfsaild/sda2", Op::kWrite, kFlagMeta));
  EXPECT_TRUE(Judge(41 * kSecond, "btrfs-transacti", Op::kWrite, kFlagMeta));
}

}  // namespace
}  // namespace blktape
