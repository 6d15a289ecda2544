#include "tests/live/live_fixture.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/status.h"
#include "base/units.h"
#include "tests/support/requires.h"

namespace blktape {

void LiveTest::SetUp() {
  BLKTAPE_REQUIRE_ROOT();
  folder_ = ::testing::TempDir() + "/live.XXXXXX";
  ASSERT_NE(mkdtemp(folder_.data()), nullptr) << folder_;
  Result<std::unique_ptr<LoopDevice>> loop = LoopDevice::Make(folder_, kDiskBytes);
  BLKTAPE_REQUIRE(loop.ok(), "loop devices: " << loop.status().message());
  loop_ = std::move(loop).value();
  ASSERT_EQ(posix_memalign(&buffer_, 4096, kBufferBytes), 0);
  std::fill_n(static_cast<char*>(buffer_), kBufferBytes, 'x');
}

void LiveTest::TearDown() {
  free(buffer_);
  loop_.reset();
  if (!folder_.empty()) std::filesystem::remove_all(folder_);
}

UniqueFd LiveTest::OpenDirect(const std::string& path) {
  return UniqueFd(open(path.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
}

void LiveTest::WriteAt(const UniqueFd& disk, uint64_t sector, size_t bytes) const {
  ASSERT_EQ(pwrite(disk.get(), buffer_, bytes, static_cast<off_t>(sector * kSectorBytes)),
            static_cast<ssize_t>(bytes));
}

void LiveTest::ReadAt(const UniqueFd& disk, uint64_t sector, size_t bytes) const {
  ASSERT_EQ(pread(disk.get(), buffer_, bytes, static_cast<off_t>(sector * kSectorBytes)),
            static_cast<ssize_t>(bytes));
}

}  // namespace blktape
