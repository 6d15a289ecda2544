#include "host/dirty_pages.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file.h"

namespace blktape {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxStackDepth = 16;

// Names of `folder`'s device and of all devices on top of it, including partitions.
void CollectAbove(const fs::path& folder, int depth, std::vector<std::string>* names) {
  if (depth > kMaxStackDepth) return;
  names->push_back(folder.filename().string());
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code missing;
    if (fs::exists(it->path() / "partition", missing)) CollectAbove(it->path(), depth + 1, names);
  }
  error.clear();
  for (fs::directory_iterator it(folder / "holders", error), end; !error && it != end;
       it.increment(error)) {
    std::error_code unresolved;
    const fs::path holder = fs::canonical(it->path(), unresolved);
    if (!unresolved) CollectAbove(holder, depth + 1, names);
  }
}

}  // namespace

uint64_t SumKiB(const std::string& text, const std::vector<std::string>& names) {
  uint64_t total = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    if (std::find(names.begin(), names.end(), line.substr(0, colon)) == names.end()) continue;
    const size_t digits = line.find_first_of("0123456789", colon);
    if (digits == std::string_view::npos) continue;
    uint64_t value = 0;
    std::from_chars(line.data() + digits, line.data() + line.size(), value);
    total += value;
  }
  return total;
}

DirtyPages::DirtyPages(const std::vector<Disk>& disks) {
  Result<KernelFs> debugfs = KernelFs::Debugfs();
  if (!debugfs.ok()) return;
  debugfs_ = std::move(debugfs).value();
  const std::string bdi = debugfs_->folder() + "/bdi/";
  for (const Disk& disk : disks) {
    std::error_code error;
    const fs::path folder = fs::canonical("/sys/class/block/" + disk.description.name(), error);
    std::vector<std::string> names;
    if (!error) CollectAbove(folder, 0, &names);
    for (const std::string& name : names) {
      const fs::path link = fs::read_symlink("/sys/class/block/" + name + "/bdi", error);
      if (!error) paths_.push_back(bdi + link.filename().string() + "/stats");
    }
  }
  // A btrfs has its own count, which does not show its disks.
  std::error_code error;
  for (fs::directory_iterator it(bdi, error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename().string().substr(0, 6) == "btrfs-") {
      paths_.push_back((it->path() / "stats").string());
    }
  }
}

uint64_t DirtyPages::KiB() const {
  uint64_t total = 0;
  bool known = false;
  for (const std::string& path : paths_) {
    const Result<std::string> text = ReadFile(path);
    if (!text.ok()) continue;
    known = true;
    total += SumKiB(*text, {"BdiWriteback", "BdiReclaimable"});
  }
  if (known) return total;
  const Result<std::string> text = ReadFile("/proc/meminfo");
  return text.ok() ? SumKiB(*text, {"Dirty", "Writeback"}) : 0;
}

}  // namespace blktape
