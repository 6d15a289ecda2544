#include "replay/target/target.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "base/quantity.h"
#include "base/units.h"
#include "host/block_stat.h"
#include "host/sysfs_device.h"
#include "host/system_view.h"
#include "replay/target/signature.h"
#include "replay/target/target_guard.h"

namespace blktape {
namespace {

constexpr char kClassBlock[] = "/sys/class/block/";
constexpr char kScratchMark[] = "user.blktape.scratch";
#ifndef BLKGETDISKSEQ
#define BLKGETDISKSEQ _IOR(0x12, 128, uint64_t)  // since Linux 5.15
#endif
#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342  // "XFSB"
#endif
constexpr size_t kProbeAlignment = 4096;
constexpr size_t kProbeBytes = 1 << 20;
// A file with more data than this is not read to find out whether it contains only zeroes.
constexpr uint64_t kZeroSearchBytes = 256ull << 20;

using AlignedBuffer = std::unique_ptr<std::byte, decltype(&std::free)>;

AlignedBuffer MakeAlignedBuffer(size_t bytes) {
  return {static_cast<std::byte*>(std::aligned_alloc(kProbeAlignment, bytes)), &std::free};
}

// Whether the kernel accepts a read of `bytes` at offset 0.
bool CanRead(int fd, std::byte* buffer, size_t bytes) {
  return pread(fd, buffer, bytes, 0) == static_cast<ssize_t>(bytes);
}

struct DirectFacts {
  bool direct = false;
  uint32_t block_bytes = 512;  // offsets and lengths must be multiples of this
  std::string how;
};

// How a descriptor opened with O_DIRECT really behaves.
DirectFacts ProveDirect(int fd, bool is_block, uint32_t device_block_bytes) {
  DirectFacts facts;
  facts.block_bytes = device_block_bytes;
#ifdef STATX_DIOALIGN
  struct statx info{};
  if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &info) == 0 &&
      (info.stx_mask & STATX_DIOALIGN) != 0) {
    facts.direct = info.stx_dio_offset_align != 0;
    if (facts.direct && !is_block) facts.block_bytes = info.stx_dio_offset_align;
    facts.how = facts.direct ? "O_DIRECT, vouched for by statx"
                             : "page cache: statx says that O_DIRECT is not supported here";
    return facts;
  }
#endif
  const AlignedBuffer buffer = MakeAlignedBuffer(kProbeAlignment);
  if (buffer == nullptr || CanRead(fd, buffer.get(), 100)) {
    facts.how = "page cache: O_DIRECT is accepted but a misaligned read succeeds";
    return facts;
  }
  facts.direct = true;
  facts.how = "O_DIRECT, proven by the refusal of a misaligned read";
  for (const uint32_t bytes : {512u, 1024u, 2048u, 4096u}) {
    if (is_block || !CanRead(fd, buffer.get(), bytes)) continue;
    facts.block_bytes = bytes;
    break;
  }
  return facts;
}

bool AllZero(const std::byte* data, size_t bytes) {
  return std::all_of(data, data + bytes, [](std::byte b) { return b == std::byte{0}; });
}

// Whether a file may be overwritten without `overwrite`: it is marked as scratch, or contains only
// zeroes.
Result<bool> IsScratch(const std::string& pinned, const std::string& path, uint64_t size_bytes) {
  const UniqueFd fd(open(pinned.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return ErrnoStatus(errno, path);
  if (fgetxattr(fd.get(), kScratchMark, nullptr, 0) >= 0) return true;
  const AlignedBuffer buffer = MakeAlignedBuffer(kProbeBytes);
  if (buffer == nullptr) return ErrnoStatus(ENOMEM, path);
  uint64_t searched_bytes = 0;
  uint64_t at = 0;
  while (at < size_bytes) {
    const off_t data = lseek(fd.get(), static_cast<off_t>(at), SEEK_DATA);
    if (data < 0) {
      if (errno == ENXIO) break;  // only a hole is left
      return ErrnoStatus(errno, path + ": seek");
    }
    at = static_cast<uint64_t>(data);
    const ssize_t got = pread(fd.get(), buffer.get(), kProbeBytes, data);
    if (got < 0) return ErrnoStatus(errno, fmt::format("{}: read at offset {}", path, at));
    if (got == 0) break;
    if (!AllZero(buffer.get(), static_cast<size_t>(got))) return false;
    at += static_cast<uint64_t>(got);
    searched_bytes += static_cast<uint64_t>(got);
    if (searched_bytes > kZeroSearchBytes) return false;
  }
  return true;
}

// Where the kernel keeps a disk's serial number: NVMe, virtio, SCSI (page 0x80 of the vital product
// data, after a header of four bytes).
std::string SerialOf(const std::string& folder) {
  for (const char* attribute : {"/device/serial", "/serial"}) {
    if (const auto text = ReadAttribute(folder + attribute); text.ok() && !text->empty()) {
      return *text;
    }
  }
  const Result<std::string> page = ReadFile(folder + "/device/vpd_pg80");
  std::string serial;
  for (size_t i = 4; page.ok() && i < page->size(); ++i) {
    if ((*page)[i] > ' ' && (*page)[i] <= '~') serial += (*page)[i];
  }
  return serial;
}

// The lock of the disk at this node, for targets that are its partitions. By systemd's rule for
// block devices (systemd.io/BLOCK_DEVICE_LOCKING), udev's probes and other programs leave a disk
// alone while its lock is held. Two partitions of one disk share the lock, because it also excludes
// other descriptors of this process.
Result<std::shared_ptr<UniqueFd>> DiskLockOf(const std::string& disk) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<UniqueFd>> open_locks;
  const std::lock_guard guard(mutex);
  std::shared_ptr<UniqueFd> lock = open_locks[disk].lock();
  if (lock != nullptr) return lock;
  lock = std::make_shared<UniqueFd>(open(disk.c_str(), O_RDONLY | O_CLOEXEC));
  if (!*lock) return ErrnoStatus(errno, disk);
  open_locks[disk] = lock;
  return lock;
}

class OpenTarget : public Target {
 public:
  OpenTarget(std::string path, const TargetOptions& options)
      : path_(std::move(path)), options_(options) {}

  int fd() const override { return fd_.get(); }
  const std::string& path() const override { return path_; }
  uint64_t size_bytes() const override { return size_bytes_; }
  uint32_t logical_block_bytes() const override { return direct_.block_bytes; }
  bool is_block_device() const override { return identity_.block.has_value(); }
  const std::string& identity() const override { return name_of_identity_; }
  bool direct() const override { return direct_.direct; }
  std::string access() const override { return direct_.how; }
  const TargetAbilities& abilities() const override { return abilities_; }
  const proto::Device& description() const override { return description_; }
  void RefreshQueueSettings() override {
    if (!is_block_device()) return;
    const Result<proto::Device> now = DescribeDisk(disk_folder_);
    if (!now.ok()) return;
    description_.set_scheduler(now->scheduler());
    if (now->has_nomerges()) description_.set_nomerges(now->nomerges());
    if (now->has_read_ahead_kb()) description_.set_read_ahead_kb(now->read_ahead_kb());
    if (now->has_nr_requests()) description_.set_nr_requests(now->nr_requests());
  }
  std::optional<uint64_t> StatSectors() const override {
    if (!is_block_device()) return std::nullopt;
    const std::optional<BlockStat> stat = ReadBlockStat(disk_folder_);
    if (!stat) return std::nullopt;
    return stat->sectors();
  }
  const std::string& disk() const override { return disk_folder_; }
  DriveHealth Health() const override {
    return is_block_device() ? ReadDriveHealth(disk_folder_, fd_.get()) : DriveHealth();
  }

  Status Open() {
    RETURN_IF_ERROR(Identify());
    if (is_block_device()) {
      RETURN_IF_ERROR(DescribeBlockDevice());
    } else {
      DescribeFile();
    }
    if (options_.write) RETURN_IF_ERROR(CheckMayWrite());
    RETURN_IF_ERROR(OpenDescriptor());
    RETURN_IF_ERROR(CheckIdentity());
    if (size_bytes_ == 0) {
      return Status(StatusCode::kFailedPrecondition,
                    path_ +
                        " has no size: no medium, not set up, or an empty file\n"
                        "  try:  a file of the size of the recorded disk: truncate -s 8G FILE");
    }
    pin_.reset();
    FindAbilities();
    description_.set_size_bytes(size_bytes_);
    description_.set_logical_block_bytes(direct_.block_bytes);
    if (!is_block_device()) {
      if (const auto bytes = UnwrittenBytes()) description_.set_unwritten_bytes(*bytes);
    } else if (const auto cache = DriveWriteCache(disk_folder_, fd_.get())) {
      description_.set_drive_write_cache(*cache);
    }
    return OkStatus();
  }

 private:
  // From here on the path is used only in messages: the object that it refers to now is checked and
  // opened. This descriptor gives no access and blocks nobody.
  Status Identify() {
    pin_.reset(open(path_.c_str(), O_PATH | O_CLOEXEC));
    struct stat info{};
    if (!pin_ || fstat(pin_.get(), &info) != 0) {
      if (errno != ENOENT && errno != ENOTDIR) return ErrnoStatus(errno, path_);
      return Status(StatusCode::kNotFound,
                    path_ +
                        ": there is no such device or file\n"
                        "  try:  lsblk lists devices; truncate -s 8G FILE makes a scratch file");
    }
    identity_ = IdentityOf(info);
    pinned_ = fmt::format("/proc/self/fd/{}", pin_.get());
    if (identity_.block || identity_.regular) return OkStatus();
    return Status(StatusCode::kInvalidArgument,
                  path_ + " is neither a block device nor a regular file");
  }

  Status DescribeBlockDevice() {
    const SystemView& system = *options_.system;
    const std::optional<std::string> name = KernelName(system, *identity_.block);
    if (!name) {
      return Status(StatusCode::kFailedPrecondition,
                    path_ + ": /sys does not show it\n  try:  mount -t sysfs sysfs /sys");
    }
    std::error_code error;
    folder_ = std::filesystem::canonical(kClassBlock + *name, error).string();
    const bool is_partition = DiskOfPartition(system, *name).has_value();
    disk_folder_ = is_partition ? std::filesystem::path(folder_).parent_path().string() : folder_;
    ASSIGN_OR_RETURN(description_, DescribeDisk(disk_folder_));
    description_.set_name(*name);
    description_.set_major(identity_.block->major);
    description_.set_minor(identity_.block->minor);
    description_.set_path(path_);
    description_.set_serial(SerialOf(disk_folder_));
    if (const auto sequence = ReadAttribute(disk_folder_ + "/diskseq"); sequence.ok()) {
      disk_sequence_ = *sequence;
    }
    return OkStatus();
  }

  void DescribeFile() {
    description_.set_name(std::filesystem::path(path_).filename().string());
    description_.set_path(path_);
    description_.set_is_file(true);
  }

  Status CheckMayWrite() const {
    RETURN_IF_ERROR(CheckNotInUse(*options_.system, path_, identity_, options_.keep_paths));
    if (!is_block_device()) RETURN_IF_ERROR(CheckUnwritten());
    if (is_block_device()) {
      if (const auto read_only = ReadAttribute(folder_ + "/ro");
          read_only.ok() && *read_only == "1") {
        return Status(
            StatusCode::kFailedPrecondition,
            path_ + " is read-only\n  try:  replay --skip-writes, or blockdev --setrw " + path_);
      }
    }
    if (options_.overwrite) return OkStatus();
    ASSIGN_OR_RETURN(const std::optional<std::string> signature, FindSignature(pinned_, path_));
    if (!is_block_device()) {
      struct stat info{};
      if (fstat(pin_.get(), &info) != 0) return ErrnoStatus(errno, path_);
      ASSIGN_OR_RETURN(const bool scratch,
                       IsScratch(pinned_, path_, static_cast<uint64_t>(info.st_size)));
      if (scratch) return OkStatus();
      return Status(
          StatusCode::kFailedPrecondition,
          path_ + " holds " + signature.value_or("data") +
              "; replaying writes would destroy it\n"
              "  try:  --overwrite if that may be lost, a new file, or replay --skip-writes");
    }
    const std::string model = description_.model().empty() ? "" : ", " + description_.model();
    return Status(StatusCode::kFailedPrecondition,
                  fmt::format("{} ({}{}) would lose what it holds: {}\n"
                              "  try:  --overwrite if that may be lost, a scratch file, or "
                              "replay --skip-writes",
                              path_, FormatBytes(description_.size_bytes()), model,
                              signature.value_or("nothing that libblkid recognises")));
  }

  // A kernel worker releases the registered files of an io_uring a moment after its process has
  // ended. So a previous replay can still seem to hold the target.
  static bool Patiently(const std::function<bool()>& attempt, int busy_errno) {
    Clock* const clock = Clock::Monotonic();
    const int64_t deadline_ns = clock->NowNs() + 2 * kNanosPerSecond;
    while (!attempt()) {
      const int err = errno;
      if (err != busy_errno || clock->NowNs() >= deadline_ns) {
        errno = err;
        return false;
      }
      clock->SleepUntilNs(clock->NowNs() + 20 * kNanosPerMilli);
    }
    return true;
  }

  void OpenPatiently(int flags) {
    Patiently(
        [&] {
          fd_.reset(open(pinned_.c_str(), flags));
          // Without /proc no target is written to, see CheckNotInUse.
          if (!fd_ && errno == ENOENT && !options_.write) fd_.reset(open(path_.c_str(), flags));
          return static_cast<bool>(fd_);
        },
        EBUSY);
  }

  Status Lock() {
    if (!options_.write) return OkStatus();
    if (disk_folder_ != folder_) {
      const std::string disk = "/dev/" + std::filesystem::path(disk_folder_).filename().string();
      ASSIGN_OR_RETURN(disk_lock_, DiskLockOf(disk));
    }
    RETURN_IF_ERROR(LockWhole(disk_lock_ != nullptr ? disk_lock_->get() : fd_.get()));
    if (is_block_device()) return OkStatus();
    // fcntl locks, which virtual machines and databases use to exclude each other.
    struct flock whole{};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    if (fcntl(fd_.get(), F_OFD_SETLK, &whole) == 0) return OkStatus();
    if (errno != EAGAIN && errno != EACCES) return OkStatus();  // no such locks here
    return InUse("another program has locked it, or a part of it");
  }

  Status LockWhole(int fd) const {
    if (Patiently([fd] { return flock(fd, LOCK_EX | LOCK_NB) == 0; }, EWOULDBLOCK)) {
      return OkStatus();
    }
    return InUse("another program has locked it");
  }

  Status InUse(const std::string& reason) const {
    return Status(StatusCode::kFailedPrecondition,
                  path_ + " is in use: " + reason + "\n  try:  fuser -v " + path_ +
                      (is_block_device() ? "; or another device" : "; or another file"));
  }

  // Whether nobody has the file open for writing. /proc does not show this for the kernel and for
  // processes of other users, but the kernel grants no lease then.
  Status CheckUnwritten() const {
    const UniqueFd look(open(pinned_.c_str(), O_RDONLY | O_CLOEXEC));
    if (!look) return ErrnoStatus(errno, path_);
    // For another replay this message says more than that the file is open for writing.
    RETURN_IF_ERROR(LockWhole(look.get()));
    struct statfs system{};
    if (fstatfs(look.get(), &system) != 0 || !GrantsLeases(system.f_type)) return OkStatus();
    // A process that opens the file for writing at this moment causes a signal to us, which would
    // end this process by default.
    if (fcntl(look.get(), F_SETSIG, SIGURG) != 0) return OkStatus();
    const bool granted =
        Patiently([&look] { return fcntl(look.get(), F_SETLEASE, F_RDLCK) == 0; }, EAGAIN);
    if (!granted && errno == EAGAIN) return InUse("it is open for writing");
    if (granted) (void)fcntl(look.get(), F_SETLEASE, F_UNLCK);
    return OkStatus();
  }

  // On these file systems a lease is refused only if there is a writer.
  static bool GrantsLeases(decltype(statfs::f_type) type) {
    constexpr decltype(statfs::f_type) kLocal[] = {
        EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC, TMPFS_MAGIC};
    return std::find(std::begin(kLocal), std::end(kLocal), type) != std::end(kLocal);
  }

  Status OpenDescriptor() {
    int flags = O_CLOEXEC | (options_.write ? O_RDWR : O_RDONLY);
    // While it is open, nobody else can claim the device: no mount, no second replay.
    if (options_.write && is_block_device()) flags |= O_EXCL;
    bool direct = options_.direct;
    if (direct) OpenPatiently(flags | O_DIRECT);
    if (direct && !fd_ && errno == EINVAL) direct = false;
    if (!direct) OpenPatiently(flags);
    if (!fd_) {
      if (errno != EBUSY) return ErrnoStatus(errno, path_);
      return Status(StatusCode::kFailedPrecondition,
                    path_ +
                        " is in use: the kernel or another program holds it exclusively\n"
                        "  try:  lsblk, fuser -v " +
                        path_ + "; or replay --skip-writes");
    }
    RETURN_IF_ERROR(Lock());
    RETURN_IF_ERROR(ReadGeometry());
    if (direct) {
      direct_ = ProveDirect(fd_.get(), is_block_device(), device_block_bytes_);
      return OkStatus();
    }
    direct_ = {.direct = false,
               .block_bytes = device_block_bytes_,
               .how = options_.direct ? "page cache: O_DIRECT is refused here"
                                      : "page cache, as asked for"};
    return OkStatus();
  }

  // Checks that the opened object is the one that was inspected and that the user meant. A path may
  // refer to another disk at any moment, since disks come, go and reuse names.
  Status CheckIdentity() {
    struct stat info{};
    if (fstat(fd_.get(), &info) != 0) return ErrnoStatus(errno, path_);
    const FileIdentity opened = IdentityOf(info);
    if (is_block_device()) {
      uint64_t opened_sequence = 0;
      const auto sequence = ReadAttribute(disk_folder_ + "/diskseq");
      const bool replaced = sequence.ok() &&
                            ioctl(fd_.get(), BLKGETDISKSEQ, &opened_sequence) == 0 &&
                            (*sequence != std::to_string(opened_sequence) ||
                             (!disk_sequence_.empty() && *sequence != disk_sequence_));
      if (replaced) return BecameAnother();
      name_of_identity_ = fmt::format("device {}:{}, {} bytes", opened.block->major,
                                      opened.block->minor, size_bytes_);
      if (!description_.serial().empty()) name_of_identity_ += ", serial " + description_.serial();
      if (!description_.write_cache().empty()) {
        name_of_identity_ += ", cache " + description_.write_cache();
      }
      // No other disk has had this number since boot.
      if (sequence.ok()) name_of_identity_ += ", diskseq " + *sequence;
    } else {
      name_of_identity_ =
          fmt::format("file {}:{} inode {}", major(info.st_dev), minor(info.st_dev), info.st_ino);
    }
    if (!opened.SameAs(identity_)) return BecameAnother();
    if (options_.identity.empty() || options_.identity == name_of_identity_) return OkStatus();
    return Status(StatusCode::kFailedPrecondition,
                  fmt::format("{} is not what it was when this began ({}), but {}\n"
                              "  try:  lsblk; then again, if that may be written",
                              path_, options_.identity, name_of_identity_));
  }

  Status BecameAnother() const {
    return Status(StatusCode::kFailedPrecondition,
                  path_ + " became another device or file just now\n  try:  again");
  }

  // Bytes of the file in holes, which read as zeroes without any I/O below. Absent if the file
  // system does not report holes. Ranges that are preallocated but unwritten count as holes too.
  std::optional<uint64_t> UnwrittenBytes() const {
    uint64_t holes = 0;
    const auto size = static_cast<off_t>(size_bytes_);
    for (off_t at = 0; at < size;) {
      off_t data = lseek(fd_.get(), at, SEEK_DATA);
      if (data < 0 && errno != ENXIO) return std::nullopt;
      if (data < 0) data = size;
      holes += static_cast<uint64_t>(data - at);
      if (data >= size) break;
      at = lseek(fd_.get(), data, SEEK_HOLE);
      if (at < 0) return std::nullopt;
    }
    return holes;
  }

  Status ReadGeometry() {
    if (is_block_device()) {
      int block_bytes = 0;
      if (ioctl(fd_.get(), BLKGETSIZE64, &size_bytes_) != 0 ||
          ioctl(fd_.get(), BLKSSZGET, &block_bytes) != 0) {
        return ErrnoStatus(errno, path_ + ": geometry");
      }
      device_block_bytes_ = static_cast<uint32_t>(block_bytes);
      return OkStatus();
    }
    struct stat info{};
    if (fstat(fd_.get(), &info) != 0) return ErrnoStatus(errno, path_);
    size_bytes_ = static_cast<uint64_t>(info.st_size);
    return OkStatus();
  }

  void FindAbilities() {
    if (is_block_device()) {
      abilities_.discard = description_.discard_max_bytes() > 0;
      abilities_.write_zeroes = description_.write_zeroes_max_bytes() > 0;
      abilities_.fua = description_.fua();
      // The kernel first checks whether the operation is supported (EOPNOTSUPP) and then refuses a
      // misaligned range (EINVAL), so this test changes nothing.
      uint64_t range[2] = {1, 0};
      abilities_.secure_erase =
          options_.write && ioctl(fd_.get(), BLKSECDISCARD, range) != 0 && errno == EINVAL;
      return;
    }
    if (!options_.write) return;
    // Done beyond the end of the file: its size and content do not change. Truncating the file to
    // its own size frees the space that zeroing may have reserved there.
    const off_t beyond =
        static_cast<off_t>((size_bytes_ + kProbeBytes - 1) / kProbeBytes * kProbeBytes);
    const auto can = [&](int mode) {
      return fallocate(fd_.get(), mode | FALLOC_FL_KEEP_SIZE, beyond, kProbeAlignment) == 0;
    };
    abilities_.discard = can(FALLOC_FL_PUNCH_HOLE);
    abilities_.write_zeroes = can(FALLOC_FL_ZERO_RANGE);
    (void)!ftruncate(fd_.get(), static_cast<off_t>(size_bytes_));
    abilities_.fua = true;  // RWF_DSYNC
  }

  const std::string path_;
  const TargetOptions options_;
  UniqueFd pin_;               // while Open() runs: the object that the path referred to
  std::string pinned_;         // a path to pin_
  std::string disk_sequence_;  // of the disk, when it was described
  FileIdentity identity_;
  std::string name_of_identity_;
  std::string folder_;       // of the device in sysfs
  std::string disk_folder_;  // of the disk, if the device is a partition
  UniqueFd fd_;
  std::shared_ptr<UniqueFd> disk_lock_;  // of the disk, if fd_ is a partition
  uint64_t size_bytes_ = 0;
  uint32_t device_block_bytes_ = 512;
  DirectFacts direct_;
  TargetAbilities abilities_;
  proto::Device description_;
};

}  // namespace

Result<std::unique_ptr<Target>> Target::Open(const std::string& path,
                                             const TargetOptions& options) {
  auto target = std::make_unique<OpenTarget>(path, options);
  RETURN_IF_ERROR(target->Open());
  return std::unique_ptr<Target>(std::move(target));
}

Status CreateScratchFile(const std::string& path, uint64_t size_bytes) {
  const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return ErrnoStatus(errno, path);
  if (ftruncate(fd.get(), static_cast<off_t>(size_bytes)) != 0) {
    const int err = errno;
    unlink(path.c_str());
    return ErrnoStatus(err, path + ": " + FormatBytes(size_bytes));
  }
  // If the file system cannot store this mark, a second replay onto the file needs --overwrite.
  (void)fsetxattr(fd.get(), kScratchMark, "1", 1, 0);
  return OkStatus();
}

}  // namespace blktape
