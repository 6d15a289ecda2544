#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/file.h"
#include "base/status.h"

namespace blktape {

struct LoopDeviceOptions {
  bool read_only = false;
  bool partitions = false;  // the kernel looks for a partition table
  uint32_t logical_block_bytes = 512;
};

// A loop device of a test's own, detached on destruction. The kernel takes it down when the last
// descriptor is closed, so that it does not outlive a test that crashes.
class LoopDevice {
 public:
  // Over a sparse file in `folder`, which is removed with it.
  static Result<std::unique_ptr<LoopDevice>> Make(const std::string& folder, uint64_t size_bytes,
                                                  const LoopDeviceOptions& options = {});
  // Over a file or device of the test's own, which stays.
  static Result<std::unique_ptr<LoopDevice>> Over(const std::string& backing_path,
                                                  const LoopDeviceOptions& options = {});
  ~LoopDevice();
  LoopDevice(const LoopDevice&) = delete;
  LoopDevice& operator=(const LoopDevice&) = delete;

  const std::string& path() const { return path_; }  // "/dev/loop3"
  std::string name() const { return path_.substr(5); }
  uint32_t dev() const { return dev_; }  // major << 20 | minor
  // Makes the partition known to the kernel, unless it found it in the table itself, and returns
  // its path. Needs LoopDeviceOptions::partitions.
  std::string AddPartition(int index, int64_t start_bytes, int64_t size_bytes) const;
  // Takes the whole device away, as a drive that is pulled; the kernel gets the number back on
  // destruction. Nobody may hold it open.
  Status Remove();

 private:
  LoopDevice() = default;

  void Detach();

  int number_ = -1;
  std::string path_;
  std::string own_file_;  // removed at the end; may be empty
  uint32_t dev_ = 0;
  UniqueFd fd_;
  bool removed_ = false;
};

}  // namespace blktape
