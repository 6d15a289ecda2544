#include "host/machine.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <system_error>

#include "base/file.h"
#include "base/status.h"
#include "base/units.h"

namespace blktape {
namespace {

int64_t Read(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * kNanosPerSecond + now.tv_nsec;
}

tm LocalTime(int64_t wall_ns) {
  const time_t seconds = wall_ns / kNanosPerSecond;
  tm local{};
  localtime_r(&seconds, &local);
  return local;
}

}  // namespace

proto::ClockAnchor ClockReading::anchor() const {
  proto::ClockAnchor anchor;
  anchor.set_monotonic_ns(monotonic_ns);
  anchor.set_wall_ns(wall_ns);
  return anchor;
}

ClockReading ReadClocks() {
  ClockReading best;
  int64_t best_span_ns = 0;
  // If this thread lost the CPU between two reads, it would look like a suspend or a step.
  for (int i = 0; i < 5; ++i) {
    ClockReading reading;
    const int64_t before_ns = Read(CLOCK_MONOTONIC);
    reading.boot_ns = Read(CLOCK_BOOTTIME);
    reading.wall_ns = Read(CLOCK_REALTIME);
    const int64_t after_ns = Read(CLOCK_MONOTONIC);
    reading.monotonic_ns = before_ns + (after_ns - before_ns) / 2;
    if (i == 0 || after_ns - before_ns < best_span_ns) {
      best = reading;
      best_span_ns = after_ns - before_ns;
    }
    if (best_span_ns < 5 * kNanosPerMicro) break;
  }
  return best;
}

std::vector<proto::Mark> ClockWatch::OnReading(const ClockReading& now) {
  constexpr int64_t kNoticedNs = 20 * kNanosPerMilli;
  const int64_t ran_ns = now.monotonic_ns - last_.monotonic_ns;
  const int64_t passed_ns = now.boot_ns - last_.boot_ns;
  const int64_t slept_ns = passed_ns - ran_ns;
  const int64_t stepped_ns = (now.wall_ns - last_.wall_ns) - passed_ns;
  last_ = now;
  std::vector<proto::Mark> marks;
  if (slept_ns > kNoticedNs) {
    proto::Mark mark;
    mark.set_kind(proto::SUSPEND);
    mark.set_at_ns(now.monotonic_ns);
    mark.set_value_ns(slept_ns);
    marks.push_back(mark);
  }
  // A clock that is being corrected may run up to a tenth fast or slow (adjtimex(2)).
  if (std::llabs(stepped_ns) > kNoticedNs + ran_ns / 10) {
    proto::Mark mark;
    mark.set_kind(proto::WALL_CLOCK_STEP);
    mark.set_at_ns(now.monotonic_ns);
    mark.set_value_ns(stepped_ns);
    marks.push_back(mark);
  }
  return marks;
}

std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "";
  return name.data();
}

std::string KernelRelease() {
  utsname system{};
  return uname(&system) == 0 ? system.release : "";
}

std::string UtcOffset(int64_t wall_ns) {
  const long minutes = LocalTime(wall_ns).tm_gmtoff / 60;
  return fmt::format("{}{:02}:{:02}", minutes < 0 ? '-' : '+', std::labs(minutes) / 60,
                     std::labs(minutes) % 60);
}

std::string LocalTimeName(int64_t wall_ns) {
  const tm local = LocalTime(wall_ns);
  return fmt::format("{:04}-{:02}-{:02}T{:02}-{:02}-{:02}", local.tm_year + 1900, local.tm_mon + 1,
                     local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec);
}

int64_t NextLocalMidnight(int64_t wall_ns) {
  tm local = LocalTime(wall_ns);
  local.tm_mday += 1;
  local.tm_hour = 0;
  local.tm_min = 0;
  local.tm_sec = 0;
  local.tm_isdst = -1;
  return static_cast<int64_t>(mktime(&local)) * kNanosPerSecond;
}

std::optional<uint64_t> ControlGroupMemoryBytes(const std::string& root, const std::string& self) {
  const Result<std::string> groups = ReadFile(self);
  // "0::/system.slice/blktape-record.service"
  const size_t begin = groups.ok() ? groups->rfind("0::/") : std::string::npos;
  if (begin == std::string::npos) return std::nullopt;
  std::string group = groups->substr(begin + 3, groups->find('\n', begin) - begin - 3);
  std::optional<uint64_t> least;
  // Each group up to the root's own, which has no limit.
  for (; group.size() > 1; group.resize(group.rfind('/'))) {
    const Result<std::string> limit = ReadAttribute(root + group + "/memory.max");
    uint64_t bytes = 0;
    if (!limit.ok()) continue;
    const char* end = limit->data() + limit->size();
    if (std::from_chars(limit->data(), end, bytes).ec != std::errc()) continue;  // "max"
    least = std::min(least.value_or(bytes), bytes);
  }
  return least;
}

int64_t ProcessCpuNs() { return Read(CLOCK_PROCESS_CPUTIME_ID); }

}  // namespace blktape
