#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/file.h"

namespace blktape {

// A folder that is gone with everything in it when the object is.
class ScratchFolder {
 public:
  // On tmpfs where there is one, since disks of test machines are slow; `on_disk` elsewhere.
  explicit ScratchFolder(bool on_disk = false);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Makes a sparse file.
void MakeSparseFile(const std::string& path, uint64_t size_bytes);

// A loop device of our own over a file of our own. The kernel takes it down when the last
// descriptor is closed, so that it does not outlive a test that crashes.
class LoopDevice {
 public:
  struct Options {
    bool read_only = false;
    bool partitions = false;  // the kernel looks for a partition table
    uint32_t block_bytes = 512;
  };
  // Null where loop devices cannot be made (no root, no driver).
  static std::unique_ptr<LoopDevice> Make(const std::string& backing_path, const Options& options);
  ~LoopDevice();

  // Makes the partition known to the kernel, unless it found it in the table itself, and returns
  // its path. Needs Options::partitions.
  std::string AddPartition(int index, int64_t start_bytes, int64_t size_bytes) const;

  const std::string& path() const { return path_; }
  // The kernel's name, "loop3".
  std::string name() const { return path_.substr(5); }

 private:
  LoopDevice(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  std::string path_;
  UniqueFd fd_;
};

// Runs `command` by the shell and returns its exit status; output goes to the test's log.
int Shell(const std::string& command);

// SHA-256 of a whole file.
std::string Checksum(const std::string& path);

}  // namespace blktape
