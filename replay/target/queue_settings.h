#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "replay/target/queue_attributes.h"
#include "replay/target/queue_journal.h"
#include "replay/target/queue_setting.h"

namespace blktape {

// Where the settings are, and where the journals of changes are kept.
struct QueuePlaces {
  QueueAttributes* attributes = &MachineQueueAttributes();
  std::string journal_folder = "/run/blktape";
};

// Changes queue settings of disks while this object exists. A journal is on disk before the first
// change, so that RestoreLeftQueueSettings can undo the changes after a crash. A new scheduler also
// changes the tunables of the old one and the number of requests; these are restored too.
class QueueSettingsScope {
 public:
  // `disks`: names of whole disks, not of partitions. kFailedPrecondition: a disk lacks a setting
  // or refuses the value, or another run has changed the disk's queue. After a failure no setting
  // is changed.
  static Result<std::unique_ptr<QueueSettingsScope>> Apply(
      const std::vector<std::string>& disks, const std::vector<QueueSetting>& settings,
      const QueuePlaces& places = {});
  ~QueueSettingsScope();
  QueueSettingsScope(const QueueSettingsScope&) = delete;
  QueueSettingsScope& operator=(const QueueSettingsScope&) = delete;

  // "sdb scheduler: mq-deadline -> none". Settings that already had the value are left out.
  const std::vector<std::string>& changed() const { return changed_; }

  // Restores the former values. Returns the settings that could not be restored, with the reason. A
  // second call does nothing. A value that another program has changed meanwhile is left unchanged
  // and is named in the returned list.
  std::vector<std::string> Restore();

 private:
  explicit QueueSettingsScope(const QueuePlaces& places) : places_(places) {}
  Status Change();

  const QueuePlaces places_;
  HeldJournal held_;
  std::vector<std::string> changed_;
  bool restored_ = true;
};

// Restores settings that killed runs left changed, on any disk. Returns a description of what it
// did; empty if there was nothing to do. Nothing needs to be restored for a disk that is gone or
// after a reboot.
std::vector<std::string> RestoreLeftQueueSettings(const QueuePlaces& places = {});

}  // namespace blktape
