#pragma once

#include <cstdint>
#include <string>

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

// Runs `command` by the shell and returns its exit status; output goes to the test's log.
int Shell(const std::string& command);

// SHA-256 of a whole file.
std::string Checksum(const std::string& path);

}  // namespace blktape
