#include "capture/session/trace_rotation.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <regex>
#include <system_error>
#include <utility>

#include "base/units.h"
#include "format/partial_file.h"
#include "host/machine.h"

namespace blktape {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDayNs = 24 * 3600 * kNanosPerSecond;

// "sda", "2disks" ...: how the name of a trace begins.
std::string NameOf(const std::vector<std::string>& devices) {
  return devices.size() == 1 ? devices[0] : fmt::format("{}disks", devices.size());
}

std::string SeriesNamed(const std::string& name) {
  static const std::regex kSeveral(R"(\d+disks)");
  return std::regex_match(name, kSeveral) ? "disks" : name;
}

}  // namespace

RotationClock::RotationClock(const RotationOptions& options, int64_t wall_ns) : options_(options) {
  Begin(wall_ns);
}

void RotationClock::Begin(int64_t wall_ns) {
  if (!options_.every_ns) {
    end_wall_ns_ = std::numeric_limits<int64_t>::max();
    return;
  }
  const int64_t every_ns = *options_.every_ns;
  if (every_ns % kDayNs != 0) {
    end_wall_ns_ = wall_ns + every_ns;
    return;
  }
  // Days are the calendar's, of 23 to 25 hours.
  end_wall_ns_ = wall_ns;
  for (int64_t day = 0; day < every_ns / kDayNs; ++day) {
    end_wall_ns_ = NextLocalMidnight(end_wall_ns_);
  }
}

bool RotationClock::Due(int64_t wall_ns, uint64_t file_bytes) const {
  return wall_ns >= end_wall_ns_ || (options_.at_bytes && file_bytes >= *options_.at_bytes);
}

std::string RotatedPath(const std::string& folder, const std::vector<std::string>& devices,
                        int64_t wall_ns) {
  return FreePath(fmt::format("{}/{}_{}.tape", folder, NameOf(devices), LocalTimeName(wall_ns)));
}

std::string FreePath(const std::string& path) {
  std::error_code error;
  const auto taken = [&](const std::string& one) {
    return fs::exists(one, error) || fs::exists(PartialPath(one), error);
  };
  const fs::path whole(path);
  const std::string stem = (whole.parent_path() / whole.stem()).string();
  std::string free_path = path;
  for (int i = 2; taken(free_path); ++i) {
    free_path = fmt::format("{}_{}{}", stem, i, whole.extension().string());
  }
  return free_path;
}

namespace {

struct FinishedTrace {
  fs::file_time_type time;
  std::string path;
  uint64_t bytes = 0;
};

// Of rotating recordings of the series, the oldest first.
std::vector<FinishedTrace> FinishedTraces(const std::string& folder, const std::string& series) {
  static const std::regex kName(R"(([^/]+)_(\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}(_\d+)?)\.tape)");
  std::vector<FinishedTrace> traces;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    const std::string name = it->path().filename().string();
    std::smatch parts;
    if (!std::regex_match(name, parts, kName) || SeriesNamed(parts[1]) != series) continue;
    if (!it->is_regular_file(gone) || gone) continue;
    const uint64_t bytes = it->file_size(gone);
    const fs::file_time_type time = it->last_write_time(gone);
    if (!gone) traces.push_back({time, it->path().string(), bytes});
  }
  std::sort(traces.begin(), traces.end(), [](const FinishedTrace& a, const FinishedTrace& b) {
    return std::pair(a.time, a.path) < std::pair(b.time, b.path);
  });
  return traces;
}

}  // namespace

std::string SeriesOf(const std::vector<std::string>& devices) {
  return SeriesNamed(NameOf(devices));
}

std::vector<std::string> RemoveOldTraces(const std::string& folder, const std::string& series,
                                         uint64_t keep_bytes, uint64_t growing_bytes) {
  const std::vector<FinishedTrace> traces = FinishedTraces(folder, series);
  uint64_t total_bytes = growing_bytes;
  for (const FinishedTrace& trace : traces) total_bytes += trace.bytes;
  std::vector<std::string> removed;
  for (size_t i = 0; i + 1 < traces.size() && total_bytes > keep_bytes; ++i) {
    std::error_code failed;
    if (!fs::remove(traces[i].path, failed)) continue;
    total_bytes -= traces[i].bytes;
    removed.push_back(traces[i].path);
  }
  return removed;
}

std::vector<std::string> RemoveOldest(const std::string& folder, const std::string& series,
                                      uint64_t bytes) {
  std::vector<std::string> removed;
  uint64_t freed_bytes = 0;
  for (const FinishedTrace& trace : FinishedTraces(folder, series)) {
    if (freed_bytes >= bytes) break;
    std::error_code failed;
    if (!fs::remove(trace.path, failed)) continue;
    freed_bytes += trace.bytes;
    removed.push_back(trace.path);
  }
  return removed;
}

}  // namespace blktape
