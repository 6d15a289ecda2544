#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace blktape {

// One attribute of a disk's queue, before a run and during it.
struct QueueChange {
  std::string attribute;  // under /sys/block/DISK/queue: "scheduler", "iosched/read_expire"
  std::string before;
  // Absent: nobody asked for another value, but a new scheduler may bring one.
  std::optional<std::string> during;
};

struct DiskChanges {
  std::string disk;  // "sdb"
  // Tells the disk from a later one of the same name.
  std::string identity;
  std::vector<QueueChange> changes;  // in the order in which they are undone
};

// What has to be undone after a run, and is when the run was killed.
struct QueueJournal {
  std::string boot_id;  // of the kernel that was set: another one knows nothing of it
  int64_t pid = 0;
  std::vector<DiskChanges> disks;
};

// A journal on disk, locked as long as this lives: while its run lasts nobody else uses it.
struct HeldJournal {
  std::string path;
  UniqueFd lock;
  QueueJournal journal;
};

// Everything below happens under this lock of the folder, which is made if it is not there.
Result<UniqueFd> LockJournalFolder(const std::string& folder);

// Writes a new journal, durably: once this returns, a crash costs nothing.
Result<HeldJournal> CreateQueueJournal(const std::string& folder, QueueJournal journal);

// What lies in the folder.
struct FoundJournals {
  std::vector<HeldJournal> left;      // of runs that have ended without undoing
  std::vector<QueueJournal> at_work;  // of runs that go on
  std::vector<std::string> damaged;   // paths of what cannot be read, with the reason
};
FoundJournals FindQueueJournals(const std::string& folder);

}  // namespace blktape
