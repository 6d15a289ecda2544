#include "cli/temp_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace blktape {

Result<TempFolder> TempFolder::Create() {
  const char* base = std::getenv("TMPDIR");
  std::string path =
      std::string(base == nullptr || *base == '\0' ? "/tmp" : base) + "/blktape-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) return ErrnoStatus(errno, "making a folder " + path);
  return TempFolder(path);
}

TempFolder::~TempFolder() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace blktape
