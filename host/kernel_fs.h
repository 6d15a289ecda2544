#pragma once

#include <string>

#include "base/file.h"
#include "base/status.h"

namespace blktape {

// A pseudo file system of the kernel (tracefs, debugfs). Uses the existing mount or, if there is
// none, makes a private mount that has no path and disappears with this object. Movable.
class KernelFs {
 public:
  // `type` is "tracefs" or "debugfs", `usual` its usual mount point, `magic` its number in
  // linux/magic.h. kPermissionDenied if this process may not mount it, kUnavailable if the kernel
  // lacks it.
  static Result<KernelFs> Open(const std::string& type, const std::string& usual, long magic);
  static Result<KernelFs> Tracefs();
  static Result<KernelFs> Debugfs();

  // The root folder: "/sys/kernel/tracing" or "/proc/self/fd/7". Valid only in this process and
  // while the object exists.
  const std::string& folder() const { return folder_; }

 private:
  KernelFs(UniqueFd mount, std::string folder)
      : mount_(std::move(mount)), folder_(std::move(folder)) {}

  UniqueFd mount_;
  std::string folder_;
};

}  // namespace blktape
