#include "capture/tracefs/trace_instance.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/process.h"

namespace blktape {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "blktape-";

}  // namespace

Result<std::unique_ptr<TraceInstance>> TraceInstance::Create(const std::string& tracefs) {
  static std::atomic<int> next{0};
  const std::string name =
      std::string(kPrefix) + OwnPidAndStart() + "-" + std::to_string(next.fetch_add(1));
  std::string folder = tracefs + "/instances/" + name;
  if (mkdir(folder.c_str(), 0700) != 0) {
    return ErrnoStatus(errno, "making a tracing instance in tracefs (instances/" + name + ")");
  }
  return std::unique_ptr<TraceInstance>(new TraceInstance(std::move(folder)));
}

TraceInstance::~TraceInstance() { (void)Remove(); }

std::string TraceInstance::Path(std::string_view file) const {
  return folder_ + "/" + std::string(file);
}

Status TraceInstance::Set(std::string_view file, std::string_view text) const {
  return WriteAttribute(Path(file), text);
}

Status TraceInstance::Remove() {
  if (folder_.empty()) return OkStatus();
  // A reader that is just leaving makes it busy for a moment.
  int tries = 50;
  while (rmdir(folder_.c_str()) != 0) {
    if (errno == ENOENT) break;
    if (errno != EBUSY || --tries == 0) return ErrnoStatus(errno, "removing " + folder_);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  folder_.clear();
  return OkStatus();
}

int RemoveDeadInstances(const std::string& tracefs) {
  std::vector<std::string> dead;
  std::error_code error;
  for (fs::directory_iterator it(tracefs + "/instances", error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.substr(0, kPrefix.size()) != kPrefix) continue;
    // blktape-PID-START-N
    const std::string rest = name.substr(kPrefix.size());
    if (!ProcessLives(rest.substr(0, rest.rfind('-')))) dead.push_back(it->path().string());
  }
  int removed = 0;
  for (const std::string& folder : dead) {
    if (rmdir(folder.c_str()) == 0) ++removed;
  }
  return removed;
}

}  // namespace blktape
