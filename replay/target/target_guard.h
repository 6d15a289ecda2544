#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "host/system_view.h"

namespace blktape {

// Refuses, with kFailedPrecondition, to let anything be written to what somebody uses; no flag
// overrides it. A block device is in use if it, one of its partitions, the disk it is a partition
// of, or anything stacked on those (LVM, RAID, crypt, bcache, multipath, loop devices) is mounted,
// is swap, is exported by the kernel's NVMe target, is open for writing in another process, or is
// held at all; a loop device also if the device below it is. So it is if any of that, but for being
// held, is true of a device that it is made of or of another one over the same sectors (see
// SectorMap), and if the same drive is in use by another path. A regular file is in use if it backs
// a loop device, is a swap file, or is open for writing in another process. Neither may be one of
// `keep_paths` (the trace, the result), nor lie under them as a loop device does. Also refuses
// where /proc or /sys do not tell: what cannot be known to be free is not free.
//
// Mounts count in whatever mount namespace they are. Messages name `path`, the reason, and in a
// "try:" line the way out. What only the kernel knows (a claim by ZFS) is left to O_EXCL.
Status CheckNotInUse(const SystemView& system, const std::string& path,
                     const FileIdentity& identity, const std::vector<std::string>& keep_paths);

}  // namespace blktape
