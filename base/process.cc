#include "base/process.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"

namespace blktape {
namespace {

// Fields are counted after the program's name, which may contain blanks and brackets.
std::string StartTimeOf(const std::string& pid) {
  const Result<std::string> stat = ReadFile("/proc/" + pid + "/stat");
  if (!stat.ok()) return "";
  size_t at = stat->rfind(')');
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = stat->find(' ', at + 1);
  if (at == std::string::npos) return "";
  return stat->substr(at + 1, stat->find(' ', at + 1) - at - 1);
}

}  // namespace

std::string OwnPidAndStart() {
  const std::string pid = std::to_string(getpid());
  return pid + "-" + StartTimeOf(pid);
}

bool ProcessLives(std::string_view pid_and_start) {
  const size_t dash = pid_and_start.find('-');
  if (dash == std::string_view::npos) return false;
  const std::string start = StartTimeOf(std::string(pid_and_start.substr(0, dash)));
  return !start.empty() && pid_and_start.substr(dash + 1) == start;
}

namespace {

struct rlimit files_before = {};  // 0: never raised

}  // namespace

std::optional<PidNamespace> LocalPidNamespace() {
  constexpr uint64_t kFirst = 0xEFFFFFFC;  // PROC_PID_INIT_INO of include/linux/proc_ns.h
  struct stat info{};
  if (stat("/proc/self/ns/pid", &info) != 0 || info.st_ino == kFirst) return std::nullopt;
  return PidNamespace{uint64_t{major(info.st_dev)} << 20 | minor(info.st_dev), info.st_ino};
}

void RaiseOpenFilesLimit() {
  struct rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  files_before = limit;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

void RestoreOpenFilesLimit() {
  if (files_before.rlim_max != 0) (void)setrlimit(RLIMIT_NOFILE, &files_before);
}

}  // namespace blktape
