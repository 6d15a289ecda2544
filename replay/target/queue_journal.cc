#include "replay/target/queue_journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/json.h"

namespace blktape {
namespace {

constexpr char kPrefix[] = "queue-settings-";
constexpr char kEnding[] = ".json";
constexpr char kUnfinished[] = ".new";

// A relative name inside the folder of a queue; no path that leads out of it.
bool IsSafeName(const std::string& name, bool with_folder) {
  if (name.empty() || name.find("..") != std::string::npos || name[0] == '/') return false;
  return with_folder || name.find('/') == std::string::npos;
}

std::string ToText(const QueueJournal& journal) {
  Json disks = Json::array();
  for (const DiskChanges& disk : journal.disks) {
    Json changes = Json::array();
    for (const QueueChange& change : disk.changes) {
      Json one = {{"attribute", change.attribute}, {"before", change.before}};
      if (change.during) one["during"] = *change.during;
      changes.push_back(std::move(one));
    }
    disks.push_back(
        {{"disk", disk.disk}, {"identity", disk.identity}, {"changes", std::move(changes)}});
  }
  const Json json = {{"boot_id", journal.boot_id}, {"pid", journal.pid}, {"disks", disks}};
  return JsonText(json) + "\n";
}

std::optional<std::string> TextOf(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (!json.is_object() || found == json.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

Result<QueueJournal> Parse(const std::string& path, const std::string& text) {
  const Status wrong(StatusCode::kDataLoss, path + ": is no journal of queue settings");
  const Json json = ParseJson(text);
  if (!json.is_object() || !json.contains("pid") || !json["pid"].is_number_integer() ||
      !json.contains("disks") || !json["disks"].is_array() || !TextOf(json, "boot_id")) {
    return wrong;
  }
  QueueJournal journal{.boot_id = *TextOf(json, "boot_id"), .pid = json["pid"], .disks = {}};
  for (const Json& one : json["disks"]) {
    const auto name = TextOf(one, "disk");
    const auto identity = TextOf(one, "identity");
    if (!name || !identity || !IsSafeName(*name, false) || !one.contains("changes")) return wrong;
    DiskChanges disk{.disk = *name, .identity = *identity, .changes = {}};
    for (const Json& change : one["changes"]) {
      const auto attribute = TextOf(change, "attribute");
      const auto before = TextOf(change, "before");
      if (!attribute || !before || !IsSafeName(*attribute, true)) return wrong;
      disk.changes.push_back({*attribute, *before, TextOf(change, "during")});
    }
    journal.disks.push_back(std::move(disk));
  }
  return journal;
}

// Only journals that this user wrote are trusted, because they say what to write into sysfs.
bool IsOurs(int fd) {
  struct stat info{};
  return fstat(fd, &info) == 0 && info.st_uid == geteuid() &&
         (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

Result<UniqueFd> LockJournalFolder(const std::string& folder) {
  if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) return ErrnoStatus(errno, folder);
  const std::string path = folder + "/queue-settings.lock";
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return ErrnoStatus(errno, path);
  // The lock is only ever held for a moment.
  while (flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return ErrnoStatus(errno, path);
  }
  return fd;
}

Result<HeldJournal> CreateQueueJournal(const std::string& folder, QueueJournal journal) {
  std::string fresh = folder + "/" + kPrefix + "XXXXXX" + kUnfinished;
  HeldJournal held;
  held.lock.reset(mkostemps(fresh.data(), static_cast<int>(sizeof kUnfinished) - 1, O_CLOEXEC));
  if (!held.lock) return ErrnoStatus(errno, folder);
  const std::string text = ToText(journal);
  if (flock(held.lock.get(), LOCK_EX | LOCK_NB) != 0 ||
      write(held.lock.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      fsync(held.lock.get()) != 0) {
    const int err = errno;
    unlink(fresh.c_str());
    return ErrnoStatus(err, "writing " + fresh);
  }
  held.path = fresh.substr(0, fresh.size() - (sizeof kUnfinished - 1)) + kEnding;
  if (Status renamed = RenameDurably(fresh, held.path); !renamed.ok()) {
    unlink(fresh.c_str());
    return renamed;
  }
  held.journal = std::move(journal);
  return held;
}

FoundJournals FindQueueJournals(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().filename().string().starts_with(kPrefix)) paths.push_back(it->path().string());
  }
  std::sort(paths.begin(), paths.end());
  FoundJournals found;
  for (const std::string& path : paths) {
    // No process is writing a journal while we hold the folder's lock: the writer died before it
    // changed any setting.
    if (path.ends_with(kUnfinished)) unlink(path.c_str());
    if (!path.ends_with(kEnding)) continue;
    UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd || !IsOurs(fd.get())) continue;
    const bool free = flock(fd.get(), LOCK_EX | LOCK_NB) == 0;
    const Result<std::string> text = ReadFile(path);
    Result<QueueJournal> journal = text.ok() ? Parse(path, *text) : text.status();
    if (!journal.ok()) {
      found.damaged.push_back(journal.status().message());
    } else if (free) {
      found.left.push_back({path, std::move(fd), *std::move(journal)});
    } else {
      found.at_work.push_back(*std::move(journal));
    }
  }
  return found;
}

}  // namespace blktape
