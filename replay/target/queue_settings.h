#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "replay/target/queue_attributes.h"
#include "replay/target/queue_journal.h"
#include "replay/target/queue_setting.h"

namespace blktape {

// Where settings lie and where what is to be undone is kept.
struct QueuePlaces {
  QueueAttributes* attributes = &MachineQueueAttributes();
  std::string journal_folder = "/run/blktape";
};

// Queue settings of disks, changed as long as this lives. A journal is on disk before the first
// change, so that what a crash leaves behind is undone by RestoreLeftQueueSettings. A new scheduler
// takes the tunables of the old one and the number of requests with it: they are restored too.
class QueueSettingsScope {
 public:
  // `disks` by name, whole disks, no partitions. kFailedPrecondition: a disk lacks a setting or
  // refuses the value, or another run has changed the disk's queue; nothing stays changed.
  static Result<std::unique_ptr<QueueSettingsScope>> Apply(
      const std::vector<std::string>& disks, const std::vector<QueueSetting>& settings,
      const QueuePlaces& places = {});
  ~QueueSettingsScope();
  QueueSettingsScope(const QueueSettingsScope&) = delete;
  QueueSettingsScope& operator=(const QueueSettingsScope&) = delete;

  // "sdb scheduler: mq-deadline -> none"; what was so already is left out.
  const std::vector<std::string>& changed() const { return changed_; }

  // Puts back what was. Returns what could not be, with the reason. The second call does nothing.
  // A value that somebody else has set meanwhile is left as it is, and named.
  std::vector<std::string> Restore();

 private:
  explicit QueueSettingsScope(const QueuePlaces& places) : places_(places) {}
  Status Change();

  const QueuePlaces places_;
  HeldJournal held_;
  std::vector<std::string> changed_;
  bool restored_ = true;
};

// Undoes what runs that were killed left changed, on any disk. Returns what it did, in words;
// empty if there was nothing. A disk that is gone, and a kernel that has restarted, need nothing.
std::vector<std::string> RestoreLeftQueueSettings(const QueuePlaces& places = {});

}  // namespace blktape
