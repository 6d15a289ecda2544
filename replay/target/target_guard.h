#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "host/system_view.h"

namespace blktape {

// Refuses (kFailedPrecondition) to write to a device or file that is in use. No flag overrides
// this. Consider a block device, its partitions, the disk that it is a partition of, and everything
// stacked on those (LVM, RAID, crypt, bcache, multipath, loop devices). The device is in use if one
// of these is mounted, is swap, is exported by the kernel's NVMe target, is open for writing in
// another process, or is held. A loop device is also in use if the device below it is. A device is
// also in use if any of this, except being held, is true of a device below it or of another device
// over the same sectors (see SectorMap), or if the same drive is in use by another path. A regular
// file is in use if it backs a loop device, is a swap file, or is open for writing in another
// process. Neither a device nor a file may be one of `keep_paths` (the trace, the result) or, like
// a loop device's file, lie below one. Also refuses if /proc or /sys cannot be read: a target that
// is not known to be free counts as in use.
//
// Mounts of every mount namespace count. Messages name `path`, the reason, and in a "try:" line
// what to do. Claims that only the kernel knows (of ZFS, for example) are left to O_EXCL.
Status CheckNotInUse(const SystemView& system, const std::string& path,
                     const FileIdentity& identity, const std::vector<std::string>& keep_paths);

}  // namespace blktape
