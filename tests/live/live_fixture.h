#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/file.h"
#include "tests/support/loop_device.h"

namespace blktape {

// A folder and a loop device of the test's own, and direct I/O by this process. Skips where the
// machine lets it have none; a SetUp() that does more returns if IsSkipped() or HasFatalFailure().
class LiveTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kDiskBytes = 64 * 1024 * 1024;
  static constexpr size_t kBufferBytes = 1 << 20;

  void SetUp() override;
  void TearDown() override;

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  // Past the page cache.
  static UniqueFd OpenDirect(const std::string& path);
  UniqueFd OpenDirect() const { return OpenDirect(loop_->path()); }
  // One I/O of at most kBufferBytes; it fails the test unless it is done in full.
  void WriteAt(const UniqueFd& disk, uint64_t sector, size_t bytes) const;
  void ReadAt(const UniqueFd& disk, uint64_t sector, size_t bytes) const;

  std::string folder_;
  std::unique_ptr<LoopDevice> loop_;

 private:
  void* buffer_ = nullptr;
};

}  // namespace blktape
