#include "tests/live/loop_device.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "base/file.h"

namespace blktape {

Result<std::unique_ptr<LoopDevice>> LoopDevice::Create(const std::string& folder, uint64_t bytes) {
  static std::atomic<int> next{0};
  const std::string file_path = folder + "/blktape-test-" + std::to_string(getpid()) + "-" +
                                std::to_string(next.fetch_add(1)) + ".img";
  UniqueFd file(open(file_path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return ErrnoStatus(errno, file_path);
  if (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return ErrnoStatus(errno, file_path);
  UniqueFd control(open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  if (!control) {
    unlink(file_path.c_str());
    return ErrnoStatus(errno, "/dev/loop-control");
  }
  for (int tries = 0; tries < 20; ++tries) {
    const int number = ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) break;
    const std::string path = "/dev/loop" + std::to_string(number);
    UniqueFd device(open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!device) continue;
    loop_config config{};
    config.fd = static_cast<uint32_t>(file.get());
    // Somebody else may have been given the same free one: then it is busy.
    if (ioctl(device.get(), LOOP_CONFIGURE, &config) != 0) continue;
    return std::unique_ptr<LoopDevice>(new LoopDevice(path, file_path, device.release()));
  }
  unlink(file_path.c_str());
  return Status(StatusCode::kUnavailable, "no free loop device");
}

LoopDevice::~LoopDevice() {
  const bool removed = fd_ < 0;
  Detach();
  unlink(file_path_.c_str());
  if (!removed) return;
  // The kernel had it from the beginning.
  const UniqueFd control(open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  ioctl(control.get(), LOOP_CTL_ADD, std::stol(path_.substr(9)));
}

Status LoopDevice::Remove() {
  Detach();
  const UniqueFd control(open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  const long number = std::stol(path_.substr(9));
  // Its last user may take a moment to let go.
  for (int tries = 0; tries < 100; ++tries) {
    if (ioctl(control.get(), LOOP_CTL_REMOVE, number) >= 0) return OkStatus();
    usleep(20'000);
  }
  return ErrnoStatus(errno, "removing " + path_);
}

void LoopDevice::Detach() {
  if (fd_ < 0) return;
  ioctl(fd_, LOOP_CLR_FD);
  close(fd_);
  fd_ = -1;
}

}  // namespace blktape
