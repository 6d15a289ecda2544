#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace blktape {

// A command run beside us, as a shell would run it in the foreground. Ended by SIGTERM in the
// destructor if it still runs.
class ChildCommand {
 public:
  // kNotFound, kPermissionDenied: it cannot be run.
  static Result<std::unique_ptr<ChildCommand>> Start(const std::vector<std::string>& words);
  ~ChildCommand();

  // Its exit status once it has ended; 128 + N when signal N ended it.
  std::optional<int> Ended();
  void Signal(int signal) const;

 private:
  explicit ChildCommand(pid_t pid) : pid_(pid) {}
  pid_t pid_;
  std::optional<int> status_;
};

}  // namespace blktape
