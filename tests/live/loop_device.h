#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"

namespace blktape {

// A loop device of the test's own over a sparse file of its own; both vanish with the object.
class LoopDevice {
 public:
  // `folder` takes the file.
  static Result<std::unique_ptr<LoopDevice>> Create(const std::string& folder, uint64_t bytes);
  ~LoopDevice();
  LoopDevice(const LoopDevice&) = delete;
  LoopDevice& operator=(const LoopDevice&) = delete;

  const std::string& path() const { return path_; }  // "/dev/loop3"
  std::string name() const { return path_.substr(5); }
  const std::string& file_path() const { return file_path_; }
  // Takes the whole device away, as a drive that is pulled. Nobody may hold it open.
  Status Remove();

 private:
  LoopDevice(std::string path, std::string file_path, int fd)
      : path_(std::move(path)), file_path_(std::move(file_path)), fd_(fd) {}

  void Detach();

  std::string path_;
  std::string file_path_;
  int fd_;
};

// Skips the test where the machine does not give what it needs; in CI (environment CI) it must.
#define BLKTAPE_SKIP_UNLESS(condition, reason)              \
  do {                                                      \
    if (!(condition)) {                                     \
      if (std::getenv("CI") != nullptr) FAIL() << (reason); \
      GTEST_SKIP() << "NOT TESTED HERE: " << (reason);      \
    }                                                       \
  } while (false)

}  // namespace blktape
