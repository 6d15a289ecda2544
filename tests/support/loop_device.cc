#include "tests/support/loop_device.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace blktape {

Result<std::unique_ptr<LoopDevice>> LoopDevice::Make(const std::string& folder, uint64_t size_bytes,
                                                     const LoopDeviceOptions& options) {
  std::string file = folder + "/loop.XXXXXX";
  UniqueFd backing(mkstemp(file.data()));
  if (!backing) return ErrnoStatus(errno, file);
  std::unique_ptr<LoopDevice> device(new LoopDevice());
  device->backing_file_ = file;
  if (ftruncate(backing.get(), static_cast<off_t>(size_bytes)) != 0) {
    return ErrnoStatus(errno, file + ": truncate");
  }
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
    UniqueFd fd(open(device->path_.c_str(), O_RDWR | O_CLOEXEC));
    if (!fd) return ErrnoStatus(errno, device->path_);
    loop_config config{};
    config.fd = static_cast<__u32>(backing.get());
    config.block_size = options.logical_block_bytes;
    config.info.lo_flags = options.read_only ? LO_FLAGS_READ_ONLY : 0;
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
  if (!backing_file_.empty()) unlink(backing_file_.c_str());
  if (!removed_) return;
  // The kernel had it from the beginning.
  const UniqueFd control(open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  ioctl(control.get(), LOOP_CTL_ADD, number_);
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
