#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace blktape {

// One attribute of a disk's queue: its value before a run and during it.
struct QueueChange {
  std::string attribute;  // under /sys/block/DISK/queue: "scheduler", "iosched/read_expire"
  std::string before;
  // Absent: no new value was requested, but a new scheduler may change it.
  std::optional<std::string> during;
};

struct DiskChanges {
  std::string disk;  // "sdb"
  // Distinguishes the disk from a later one with the same name.
  std::string identity;
  std::vector<QueueChange> changes;  // in the order in which they must be undone
};

// The changes to undo after a run, or by a later run if this one was killed.
struct QueueJournal {
  std::string boot_id;  // of the running kernel: the changes do not survive a reboot
  int64_t pid = 0;
  std::vector<DiskChanges> disks;
};

// A journal on disk, locked while this object exists, so that no other process uses it during its
// run.
struct HeldJournal {
  std::string path;
  UniqueFd lock;
  QueueJournal journal;
};

// Locks the folder, and creates it if it does not exist. The functions below require this lock.
Result<UniqueFd> LockJournalFolder(const std::string& folder);

// Writes a new journal durably: once this returns, it survives a crash.
Result<HeldJournal> CreateQueueJournal(const std::string& folder, QueueJournal journal);

// The journals in the folder.
struct FoundJournals {
  std::vector<HeldJournal> left;      // of runs that ended without undoing their changes
  std::vector<QueueJournal> at_work;  // of runs that are still running
  std::vector<std::string> damaged;   // paths of journals that cannot be read, with the reason
};
FoundJournals FindQueueJournals(const std::string& folder);

}  // namespace blktape
