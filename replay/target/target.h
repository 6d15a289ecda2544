#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "format/trace.pb.h"
#include "host/drive_health.h"
#include "host/system_view.h"

namespace blktape {

struct TargetOptions {
  bool write = true;       // false: opened read-only, so nothing can be damaged
  bool overwrite = false;  // the user named the device and accepts that its content is lost
  bool direct = true;      // O_DIRECT, verified by an unaligned probe or statx
  // Files that this run reads or writes (the trace, the result). None of them may be the target.
  std::vector<std::string> keep_paths = {};
  // The expected identity() of the target; empty: any target at the path is accepted.
  std::string identity = {};
  // Where to look up who uses the target.
  const SystemView* system = &MachineView();
};

// The operations that a target supports besides reading and writing.
struct TargetAbilities {
  bool discard = false;
  bool write_zeroes = false;
  bool secure_erase = false;
  bool fua = false;  // supported by the drive itself; otherwise the kernel flushes after the write
};

// A block device or a regular file opened for replay. Before the first byte is written, it refuses
// a device that is mounted (itself, a partition or a holder), used as swap, held (LVM, RAID, crypt)
// or in use (O_EXCL), and a device or file with a known signature unless `overwrite` is set.
// Writing to a block device always needs `overwrite`. Writing to a file needs it if the file
// contains anything but zeroes, unless CreateScratchFile made the file. The object that was checked
// is the one that is opened, even if the path changes meanwhile. While it is open for writing,
// nobody can mount the device or replay onto the file, and programs that respect locks (flock; on
// files also fcntl locks, as QEMU uses) leave it alone. If the file system supports leases
// (fcntl(2)), a file that any process or the kernel has open for writing is refused.
class Target {
 public:
  // Messages name the path, the reason and what to do. kFailedPrecondition: the target is refused,
  // or it is not the one that `options` expect.
  static Result<std::unique_ptr<Target>> Open(const std::string& path,
                                              const TargetOptions& options);
  virtual ~Target() = default;

  virtual int fd() const = 0;
  virtual const std::string& path() const = 0;
  virtual uint64_t size_bytes() const = 0;
  virtual uint32_t logical_block_bytes() const = 0;
  virtual bool is_block_device() const = 0;
  // A text that distinguishes this target from any other device or file that its path may later
  // refer to. It also changes with the write cache setting of the queue, because flushes then
  // behave differently.
  virtual const std::string& identity() const = 0;
  virtual bool direct() const = 0;
  // How reads and writes reach the target and how that is known, as text for the result.
  virtual std::string access() const { return direct() ? "O_DIRECT" : "page cache"; }
  virtual const TargetAbilities& abilities() const = 0;
  // Geometry, model, serial, link and queue settings, for the result and the confirmation prompt.
  virtual const proto::Device& description() const = 0;
  // Reads the queue settings in the description again.
  virtual void RefreshQueueSettings() {}
  // Sectors (512 B) read + written + discarded, from the statistics of the whole disk even if the
  // target is a partition; absent for a file.
  virtual std::optional<uint64_t> StatSectors() const = 0;
  // The disk of these statistics: the same for two partitions of one disk; "" for a file.
  virtual const std::string& disk() const = 0;
  // Temperature and other health figures of the whole disk at this moment; empty for a file. Sends
  // commands to the drive.
  virtual DriveHealth Health() const { return {}; }
};

// Makes a sparse file of `size_bytes` that later replays may write to without `overwrite`.
// kAlreadyExists if the path exists.
Status CreateScratchFile(const std::string& path, uint64_t size_bytes);

}  // namespace blktape
