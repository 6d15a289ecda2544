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

// The sum of the "NAME: N" lines in `text` for all `names`.
uint64_t Sum(const std::string& text, const std::vector<std::string>& names) {
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

// Whether pages of some processes belong to a cgroup other than the root (of this namespace).
bool MemoryIsByCgroup() {
  const Result<std::string> below = ReadFile("/sys/fs/cgroup/cgroup.subtree_control");
  if (below.ok() && below->find("memory") != std::string::npos) return true;
  std::error_code error;
  return fs::exists("/sys/fs/cgroup/memory.current", error);  // it is none of the root's files
}

}  // namespace

uint64_t DirtyKiB(const std::string& stats, bool in_flight) {
  const bool lists = stats.find("b_more_io:") != std::string::npos;
  if (lists && !in_flight && Sum(stats, {"b_dirty", "b_io", "b_more_io"}) == 0) return 0;
  return Sum(stats, {"BdiWriteback", "BdiReclaimable"});
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
      if (!error) stats_.push_back(bdi + link.filename().string() + "/stats");
    }
    inflight_.push_back("/sys/class/block/" + disk.description.name() + "/inflight");
  }
  // A btrfs has its own count, which does not show its disks.
  std::error_code error;
  for (fs::directory_iterator it(bdi, error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename().string().substr(0, 6) == "btrfs-") {
      stats_.push_back((it->path() / "stats").string());
    }
  }
  // That file came with statistics of all cgroups.
  const bool of_all = std::ranges::any_of(stats_, [](const std::string& path) {
    std::error_code missing;
    return fs::exists(fs::path(path).replace_filename("wb_stats"), missing);
  });
  if (!of_all && MemoryIsByCgroup()) stats_.clear();
}

bool DirtyPages::InFlight() const {
  return std::ranges::any_of(inflight_, [](const std::string& path) {
    const Result<std::string> text = ReadFile(path);
    return !text.ok() || text->find_first_of("123456789") != std::string::npos;
  });
}

uint64_t DirtyPages::KiB() const {
  uint64_t total = 0;
  bool known = false;
  const bool in_flight = InFlight();
  for (const std::string& path : stats_) {
    const Result<std::string> text = ReadFile(path);
    if (!text.ok()) continue;
    known = true;
    total += DirtyKiB(*text, in_flight);
  }
  if (known) return total;
  const Result<std::string> text = ReadFile("/proc/meminfo");
  return text.ok() ? Sum(*text, {"Dirty", "Writeback"}) : 0;
}

}  // namespace blktape
