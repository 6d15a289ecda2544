#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/file.h"
#include "base/status.h"

namespace blktape {

struct LoopDeviceOptions {
  bool read_only = false;
  uint32_t logical_block_bytes = 512;
};

// A loop device of a test's own over a sparse file in `folder`; detached, and the file removed, on
// destruction.
class LoopDevice {
 public:
  static Result<std::unique_ptr<LoopDevice>> Make(const std::string& folder, uint64_t size_bytes,
                                                  const LoopDeviceOptions& options = {});
  ~LoopDevice();
  LoopDevice(const LoopDevice&) = delete;
  LoopDevice& operator=(const LoopDevice&) = delete;

  const std::string& path() const { return path_; }  // "/dev/loop3"
  std::string name() const { return path_.substr(5); }
  uint32_t dev() const { return dev_; }  // major << 20 | minor
  // Takes the whole device away, as a drive that is pulled; the kernel gets the number back on
  // destruction. Nobody may hold it open.
  Status Remove();

 private:
  LoopDevice() = default;

  void Detach();

  int number_ = -1;
  std::string path_;
  std::string backing_file_;
  uint32_t dev_ = 0;
  UniqueFd fd_;
  bool removed_ = false;
};

}  // namespace blktape
