#include "host/kernel_fs.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace blktape {

Result<KernelFs> KernelFs::Open(const std::string& type, const std::string& usual, long magic) {
  struct statfs info{};
  if (statfs(usual.c_str(), &info) == 0 && info.f_type == magic) {
    if (access(usual.c_str(), R_OK | X_OK) == 0) return KernelFs(UniqueFd(), usual);
    return Status(StatusCode::kPermissionDenied, usual + " is closed to this user");
  }
  // Not attached to any path: it does not appear in the mount table, and disappears when this
  // process ends in any way.
  UniqueFd context(fsopen(type.c_str(), FSOPEN_CLOEXEC));
  if (!context) {
    if (errno == ENODEV) {
      return Status(StatusCode::kUnavailable, "this kernel has no " + type);
    }
    return ErrnoStatus(errno, "mounting " + type);
  }
  if (fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    return ErrnoStatus(errno, "mounting " + type);
  }
  UniqueFd mount(fsmount(context.get(), FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
  if (!mount) return ErrnoStatus(errno, "mounting " + type);
  std::string folder = "/proc/self/fd/" + std::to_string(mount.get());
  return KernelFs(std::move(mount), std::move(folder));
}

Result<KernelFs> KernelFs::Tracefs() {
  return Open("tracefs", "/sys/kernel/tracing", TRACEFS_MAGIC);
}

Result<KernelFs> KernelFs::Debugfs() { return Open("debugfs", "/sys/kernel/debug", DEBUGFS_MAGIC); }

}  // namespace blktape
