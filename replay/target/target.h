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
  bool write = true;       // false: opened read-only, nothing can be harmed
  bool overwrite = false;  // the user named the device and accepts that its content is lost
  bool direct = true;      // O_DIRECT, proven by an unaligned probe or statx, not assumed
  // Files this run reads or writes (the trace, the result): none of them may be the target.
  std::vector<std::string> keep_paths = {};
  // identity() of the target that was meant; empty: whatever the path leads to.
  std::string identity = {};
  // Where it is looked up who uses it.
  const SystemView* system = &MachineView();
};

// What a target can do besides reading and writing.
struct TargetAbilities {
  bool discard = false;
  bool write_zeroes = false;
  bool secure_erase = false;
  bool fua = false;  // of the drive itself; where it is missing, the kernel flushes after the write
};

// A block device or a regular file opened for replay. Refuses, before one byte is written, whatever
// is mounted (itself, a partition, a holder), swap, held (LVM, RAID, crypt), in use (O_EXCL), or
// bears a known signature without `overwrite`. A block device that is written needs `overwrite`
// whatever it holds; so does a file that holds anything but zeroes, unless CreateScratchFile made
// it. What is checked is what is opened, wherever the path leads meanwhile. While it is open for
// writing nobody can mount the device or replay onto the file; and who keeps to locks (flock, and
// on files those of fcntl, as QEMU does) leaves it alone. A file that anybody has open for writing,
// the kernel included, is refused, where its file system grants leases (fcntl(2)).
class Target {
 public:
  // Messages name path, reason and the way out. kFailedPrecondition: refused, or another one than
  // `options` want.
  static Result<std::unique_ptr<Target>> Open(const std::string& path,
                                              const TargetOptions& options);
  virtual ~Target() = default;

  virtual int fd() const = 0;
  virtual const std::string& path() const = 0;
  virtual uint64_t size_bytes() const = 0;
  virtual uint32_t logical_block_bytes() const = 0;
  virtual bool is_block_device() const = 0;
  // Tells it from any other device or file that its path may lead to later, in words; and from
  // itself with the write cache of its queue set otherwise, as flushes are another thing then.
  virtual const std::string& identity() const = 0;
  virtual bool direct() const = 0;
  // How reads and writes reach it and how that is known, in words for the result.
  virtual std::string access() const { return direct() ? "O_DIRECT" : "page cache"; }
  virtual const TargetAbilities& abilities() const = 0;
  // Geometry, model, serial, link, queue settings: for the result and the confirmation.
  virtual const proto::Device& description() const = 0;
  // Reads the queue settings of the description anew.
  virtual void RefreshQueueSettings() {}
  // Sectors (512 B) read + written + discarded according to the statistics of the whole disk, also
  // where the target is a partition; absent for a file.
  virtual std::optional<uint64_t> StatSectors() const = 0;
  // Whose figures those are: the same for two partitions of one disk; "" for a file.
  virtual const std::string& disk() const = 0;
  // Temperature and the like, now, of the whole disk; nothing for a file. Asks the drive.
  virtual DriveHealth Health() const { return {}; }
};

// Makes a sparse file of `size_bytes` that later replays may write to without being told to
// overwrite. kAlreadyExists if there is such a file.
Status CreateScratchFile(const std::string& path, uint64_t size_bytes);

}  // namespace blktape
