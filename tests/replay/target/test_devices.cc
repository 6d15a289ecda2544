#include "tests/replay/target/test_devices.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/check.h"
#include "base/file.h"
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

int Shell(const std::string& command) { return std::system((command + " >&2").c_str()); }

std::string Checksum(const std::string& path) {
  auto source = OpenForReading(path);
  BLKTAPE_CHECK(source.ok());
  auto digest = Sha256Hex(source->get());
  BLKTAPE_CHECK(digest.ok());
  return *digest;
}

}  // namespace blktape
