#include "replay/target/queue_settings.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

namespace blktape {
namespace {

constexpr char kScheduler[] = "scheduler";

std::string DiskFolder(const std::string& disk) { return "/sys/block/" + disk; }

std::string PathOf(const std::string& disk, const std::string& attribute) {
  return DiskFolder(disk) + "/queue/" + attribute;
}

// "[none] mq-deadline" means that none is active.
std::string Chosen(const std::string& text) {
  const size_t open = text.find('[');
  const size_t close = text.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return text;
  return text.substr(open + 1, close - open - 1);
}

Result<std::string> ReadChosen(const QueueAttributes& attributes, const std::string& disk,
                               const std::string& attribute) {
  ASSIGN_OR_RETURN(const std::string text, attributes.Read(PathOf(disk, attribute)));
  return Chosen(text);
}

// The disk's sequence number, which no other disk has had since boot; on old kernels the device
// number.
Result<std::string> IdentityOf(const QueueAttributes& attributes, const std::string& disk) {
  const Result<std::string> sequence = attributes.Read(DiskFolder(disk) + "/diskseq");
  if (sequence.ok()) return "diskseq " + *sequence;
  ASSIGN_OR_RETURN(const std::string number, attributes.Read(DiskFolder(disk) + "/dev"));
  return "device " + number;
}

Result<std::string> BootId(const QueueAttributes& attributes) {
  return attributes.Read("/proc/sys/kernel/random/boot_id");
}

// Attributes that the kernel resets when the scheduler changes.
std::vector<std::string> CompanionsOfScheduler(const QueueAttributes& attributes,
                                               const std::string& disk) {
  std::vector<std::string> names = {"nr_requests", "wbt_lat_usec"};
  for (const std::string& name : attributes.List(PathOf(disk, "iosched"))) {
    names.push_back("iosched/" + name);
  }
  return names;
}

// The changes that this setting causes on one disk. Changes nothing itself.
Result<DiskChanges> PlanChanges(const QueueAttributes& attributes, const std::string& disk,
                                const std::vector<QueueSetting>& settings) {
  ASSIGN_OR_RETURN(std::string identity, IdentityOf(attributes, disk));
  DiskChanges plan{.disk = disk, .identity = std::move(identity), .changes = {}};
  // The last value given for a setting counts.
  std::vector<QueueSetting> wanted;
  for (const QueueSetting& setting : settings) {
    std::erase_if(wanted, [&](const QueueSetting& one) { return one.name == setting.name; });
    wanted.push_back(setting);
  }
  // The scheduler comes first, because it changes other settings.
  std::stable_partition(wanted.begin(), wanted.end(),
                        [](const QueueSetting& one) { return one.name == kScheduler; });
  for (const QueueSetting& setting : wanted) {
    const Result<std::string> before = ReadChosen(attributes, disk, setting.name);
    if (!before.ok()) {
      return Status(StatusCode::kFailedPrecondition,
                    disk + " has no queue setting \"" + setting.name + "\"");
    }
    if (*before == setting.value) continue;
    plan.changes.push_back({setting.name, *before, setting.value});
    if (setting.name != kScheduler) continue;
    for (const std::string& name : CompanionsOfScheduler(attributes, disk)) {
      // Some attributes can be read only while they are in use.
      const Result<std::string> value = ReadChosen(attributes, disk, name);
      if (value.ok()) plan.changes.push_back({name, *value, std::nullopt});
    }
  }
  return plan;
}

Status Set(QueueAttributes* attributes, const std::string& disk, const std::string& attribute,
           const std::string& value) {
  RETURN_IF_ERROR(attributes->Write(PathOf(disk, attribute), value));
  ASSIGN_OR_RETURN(const std::string now, ReadChosen(*attributes, disk, attribute));
  if (now == value) return OkStatus();
  return Status(StatusCode::kFailedPrecondition,
                disk + " " + attribute + ": became " + now + ", not " + value);
}

struct Undone {
  std::vector<std::string> restored;  // "sdb scheduler: none -> mq-deadline"
  std::vector<std::string> left;      // with the reason
  bool again = false;                 // another attempt may succeed
};

void UndoChange(QueueAttributes* attributes, const std::string& disk, const QueueChange& change,
                Undone* undone) {
  const std::string what = disk + " " + change.attribute + ": ";
  const Result<std::string> now = ReadChosen(*attributes, disk, change.attribute);
  if (now.ok() && *now == change.before) return;
  if (now.ok() && change.during && *now != *change.during) {
    undone->left.push_back(what + "is " + *now + ", set by somebody else meanwhile; it was " +
                           change.before);
    return;
  }
  const Status set =
      now.ok() ? Set(attributes, disk, change.attribute, change.before) : now.status();
  if (set.ok()) {
    undone->restored.push_back(what + *now + " -> " + change.before);
  } else {
    undone->left.push_back(what + "was " + change.before + ": " + set.message());
    undone->again = true;
  }
}

void UndoDisk(QueueAttributes* attributes, const DiskChanges& disk, Undone* undone) {
  const Result<std::string> identity = IdentityOf(*attributes, disk.disk);
  // Another disk has this name now; its settings are not ours.
  if (!identity.ok() || *identity != disk.identity) return;
  bool companions = true;
  for (const QueueChange& change : disk.changes) {
    if (!change.during && !companions) continue;
    const size_t left = undone->left.size();
    UndoChange(attributes, disk.disk, change, undone);
    // These tunables belong to the former scheduler.
    if (change.attribute == kScheduler) companions = undone->left.size() == left;
  }
}

Undone Undo(QueueAttributes* attributes, const QueueJournal& journal) {
  Undone undone;
  for (const DiskChanges& disk : journal.disks) UndoDisk(attributes, disk, &undone);
  return undone;
}

// Requires the folder's lock.
std::vector<std::string> UndoLeft(const QueuePlaces& places, const FoundJournals& found) {
  std::vector<std::string> notes = found.damaged;
  const Result<std::string> boot_id = BootId(*places.attributes);
  for (const HeldJournal& held : found.left) {
    Undone undone;
    if (boot_id.ok() && *boot_id == held.journal.boot_id) {
      undone = Undo(places.attributes, held.journal);
    }
    const std::string whose =
        ", after a run that did not end (process " + std::to_string(held.journal.pid) + ")";
    for (const std::string& one : undone.restored) notes.push_back("restored " + one + whose);
    for (const std::string& one : undone.left) notes.push_back("not restored: " + one + whose);
    if (!undone.again) unlink(held.path.c_str());
  }
  return notes;
}

}  // namespace

Result<std::unique_ptr<QueueSettingsScope>> QueueSettingsScope::Apply(
    const std::vector<std::string>& disks, const std::vector<QueueSetting>& settings,
    const QueuePlaces& places) {
  std::unique_ptr<QueueSettingsScope> scope(new QueueSettingsScope(places));
  if (settings.empty()) return scope;
  ASSIGN_OR_RETURN(const UniqueFd lock, LockJournalFolder(places.journal_folder));
  const FoundJournals found = FindQueueJournals(places.journal_folder);
  for (const QueueJournal& other : found.at_work) {
    for (const DiskChanges& taken : other.disks) {
      if (std::find(disks.begin(), disks.end(), taken.disk) == disks.end()) continue;
      return Status(StatusCode::kFailedPrecondition,
                    taken.disk + ": another run of blktape (process " + std::to_string(other.pid) +
                        ") has changed its queue settings\n  try:  when that has ended");
    }
  }
  scope->changed_ = UndoLeft(places, found);
  ASSIGN_OR_RETURN(std::string boot_id, BootId(*places.attributes));
  QueueJournal journal{.boot_id = std::move(boot_id), .pid = getpid(), .disks = {}};
  for (const std::string& disk : disks) {
    ASSIGN_OR_RETURN(DiskChanges changes, PlanChanges(*places.attributes, disk, settings));
    // A disk without changes is in the journal too: no other run may change its queue.
    journal.disks.push_back(std::move(changes));
  }
  ASSIGN_OR_RETURN(scope->held_, CreateQueueJournal(places.journal_folder, std::move(journal)));
  scope->restored_ = false;
  RETURN_IF_ERROR(scope->Change());
  return scope;
}

Status QueueSettingsScope::Change() {
  for (const DiskChanges& disk : held_.journal.disks) {
    for (const QueueChange& change : disk.changes) {
      if (!change.during) continue;
      const Status set = Set(places_.attributes, disk.disk, change.attribute, *change.during);
      if (!set.ok()) {
        std::string message = set.message();
        if (change.attribute == kScheduler) {
          const auto known = places_.attributes->Read(PathOf(disk.disk, kScheduler));
          if (known.ok()) message += "; it has: " + *known;
        }
        return Status(set.code() == StatusCode::kPermissionDenied ? StatusCode::kPermissionDenied
                                                                  : StatusCode::kFailedPrecondition,
                      message);
      }
      changed_.push_back(disk.disk + " " + change.attribute + ": " + change.before + " -> " +
                         *change.during);
    }
  }
  return OkStatus();
}

std::vector<std::string> QueueSettingsScope::Restore() {
  if (std::exchange(restored_, true)) return {};
  const Result<UniqueFd> lock = LockJournalFolder(places_.journal_folder);
  Undone undone = Undo(places_.attributes, held_.journal);
  // The next start retries what failed.
  if (!undone.again) unlink(held_.path.c_str());
  held_.lock.reset();
  return std::move(undone.left);
}

QueueSettingsScope::~QueueSettingsScope() { (void)Restore(); }

std::vector<std::string> RestoreLeftQueueSettings(const QueuePlaces& places) {
  std::error_code error;
  if (!std::filesystem::exists(places.journal_folder + "/queue-settings.lock", error)) return {};
  const Result<UniqueFd> lock = LockJournalFolder(places.journal_folder);
  if (!lock.ok()) return {};  // not root: cannot change settings
  return UndoLeft(places, FindQueueJournals(places.journal_folder));
}

}  // namespace blktape
