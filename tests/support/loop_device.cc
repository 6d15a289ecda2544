#include "tests/support/loop_device.h"

#include <fcntl.h>
#include <linux/blkpg.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace blktape {

Result<std::unique_ptr<LoopDevice>> LoopDevice::Make(const std::string& folder, uint64_t size_bytes,
                                                     const LoopDeviceOptions& options) {
  std::string file = folder + "/loop.XXXXXX";
  const UniqueFd backing(mkstemp(file.data()));
  if (!backing) return ErrnoStatus(errno, file);
  if (ftruncate(backing.get(), static_cast<off_t>(size_bytes)) != 0) {
    return ErrnoStatus(errno, file + ": truncate");
  }
  Result<std::unique_ptr<LoopDevice>> device = Over(file, options);
  if (device.ok()) {
    (*device)->own_file_ = file;
  } else {
    unlink(file.c_str());
  }
  return device;
}

Result<std::unique_ptr<LoopDevice>> LoopDevice::Over(const std::string& backing_path,
                                                     const LoopDeviceOptions& options) {
  const int mode = (options.read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC;
  const UniqueFd backing(open(backing_path.c_str(), mode));
  if (!backing) return ErrnoStatus(errno, backing_path);
  std::unique_ptr<LoopDevice> device(new LoopDevice());
  UniqueFd control(open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  if (!control) return ErrnoStatus(errno, "/dev/loop-control");
  // Another test may take the free number first.
  for (int attempt = 0; attempt < 20; ++attempt) {
    const int number = ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) return ErrnoStatus(errno, "/dev/loop-control: no free device");
    device->number_ = number;
    device->path_ = "/dev/loop" + std::to_string(number);
    if (access(device->path_.c_str(), F_OK) != 0) {
      mknod(device->path_.c_str(), S_IFBLK | 0600, makedev(7, static_cast<unsigned>(number)));
    }
    UniqueFd fd(open(device->path_.c_str(), mode));
    if (!fd) return ErrnoStatus(errno, device->path_);
    loop_config config{};
    config.fd = static_cast<__u32>(backing.get());
    config.block_size = options.logical_block_bytes;
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    if (options.read_only) config.info.lo_flags |= LO_FLAGS_READ_ONLY;
    if (options.partitions) config.info.lo_flags |= LO_FLAGS_PARTSCAN;
    std::strncpy(reinterpret_cast<char*>(config.info.lo_file_name), backing_path.c_str(),
                 LO_NAME_SIZE - 1);
    if (ioctl(fd.get(), LOOP_CONFIGURE, &config) == 0) {
      device->fd_ = std::move(fd);
      struct stat info{};
      if (fstat(device->fd_.get(), &info) != 0) return ErrnoStatus(errno, device->path_);
      device->dev_ = major(info.st_rdev) << 20 | minor(info.st_rdev);
      return device;
    }
    if (errno != EBUSY) return ErrnoStatus(errno, device->path_ + ": LOOP_CONFIGURE");
  }
  return Status(StatusCode::kUnavailable, "no loop device could be had");
}

LoopDevice::~LoopDevice() {
  Detach();
  if (!own_file_.empty()) unlink(own_file_.c_str());
  if (!removed_) return;
  // The kernel had it from the beginning.
  const UniqueFd control(open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  ioctl(control.get(), LOOP_CTL_ADD, number_);
}

std::string LoopDevice::AddPartition(int index, int64_t start_bytes, int64_t size_bytes) const {
  const std::string path = path_ + "p" + std::to_string(index);
  if (access(path.c_str(), F_OK) == 0) return path;
  struct blkpg_partition partition{};
  partition.pno = index;
  partition.start = start_bytes;
  partition.length = size_bytes;
  struct blkpg_ioctl_arg argument{};
  argument.op = BLKPG_ADD_PARTITION;
  argument.datalen = sizeof partition;
  argument.data = &partition;
  BLKTAPE_CHECK(ioctl(fd_.get(), BLKPG, &argument) == 0);
  return path;
}

Status LoopDevice::Remove() {
  Detach();
  const UniqueFd control(open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  // Its last user may take a moment to let go.
  for (int attempt = 0; attempt < 100; ++attempt) {
    if (ioctl(control.get(), LOOP_CTL_REMOVE, number_) >= 0) {
      removed_ = true;
      return OkStatus();
    }
    usleep(20'000);
  }
  return ErrnoStatus(errno, path_ + ": LOOP_CTL_REMOVE");
}

void LoopDevice::Detach() {
  if (fd_) ioctl(fd_.get(), LOOP_CLR_FD, 0);
  fd_.reset();
}

}  // namespace blktape
