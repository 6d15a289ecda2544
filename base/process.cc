#include "base/process.h"

#include <unistd.h>

#include "base/file.h"

namespace blktape {
namespace {

// Counted from behind the program's name, which may hold blanks and brackets.
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

}  // namespace blktape
