#include "tests/replay/engine/test_devices.h"

#include <fcntl.h>
#include <linux/blkpg.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/check.h"
#include "base/sha256.h"

namespace blktape {

ScratchFolder::ScratchFolder(bool on_disk) {
  const char* tmp = std::getenv("TEST_TMPDIR");
  std::string base = tmp != nullptr ? tmp : "/tmp";
  if (!on_disk && access("/dev/shm", W_OK) == 0) base = "/dev/shm";
  path_ = base + "/blktape-test-XXXXXX";
  BLKTAPE_CHECK(mkdtemp(path_.data()) != nullptr);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void MakeSparseFile(const std::string& path, uint64_t size_bytes) {
  const UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  BLKTAPE_CHECK(fd && ftruncate(fd.get(), static_cast<off_t>(size_bytes)) == 0);
}

std::unique_ptr<LoopDevice> LoopDevice::Make(const std::string& backing_path,
                                             const Options& options) {
  const UniqueFd control(open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  const UniqueFd backing(
      open(backing_path.c_str(), (options.read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC));
  if (!control || !backing) return nullptr;
  // Another program may take the free one before us.
  for (int attempt = 0; attempt < 20; ++attempt) {
    const int number = ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) return nullptr;
    const std::string path = "/dev/loop" + std::to_string(number);
    UniqueFd fd(open(path.c_str(), (options.read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC));
    if (!fd) return nullptr;
    struct loop_config config{};
    config.fd = static_cast<uint32_t>(backing.get());
    config.block_size = options.block_bytes;
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    if (options.read_only) config.info.lo_flags |= LO_FLAGS_READ_ONLY;
    if (options.partitions) config.info.lo_flags |= LO_FLAGS_PARTSCAN;
    std::strncpy(reinterpret_cast<char*>(config.info.lo_file_name), backing_path.c_str(),
                 LO_NAME_SIZE - 1);
    if (ioctl(fd.get(), LOOP_CONFIGURE, &config) == 0) {
      return std::unique_ptr<LoopDevice>(new LoopDevice(path, std::move(fd)));
    }
  }
  return nullptr;
}

LoopDevice::~LoopDevice() { ioctl(fd_.get(), LOOP_CLR_FD, 0); }

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

int Shell(const std::string& command) { return std::system((command + " >&2").c_str()); }

std::string Checksum(const std::string& path) {
  auto source = OpenForReading(path);
  BLKTAPE_CHECK(source.ok());
  auto digest = Sha256Hex(source->get());
  BLKTAPE_CHECK(digest.ok());
  return *digest;
}

}  // namespace blktape
