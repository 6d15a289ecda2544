#include "cli/temp_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/quantity.h"

namespace blktape {
namespace {

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Result<TempFolder> TempFolder::Create(const std::vector<std::string>& places,
                                      uint64_t least_free_bytes) {
  Status refused(StatusCode::kInvalidArgument, "no place for a temporary folder");
  for (const std::string& place : places) {
    if (place.empty()) continue;
    std::string path = place + "/.blktape-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) {
      refused = ErrnoStatus(errno, "making a folder in " + place);
      continue;
    }
    TempFolder folder(path);
    std::error_code error;
    const std::filesystem::space_info space = std::filesystem::space(path, error);
    if (!error && space.available < least_free_bytes) {
      return Status(StatusCode::kResourceExhausted,
                    place + ": " + FormatBytes(space.available) +
                        " are free, the result may take " + FormatBytes(least_free_bytes) +
                        "\n  try:  -o FILE on a larger disk, or TMPDIR=FOLDER");
    }
    return folder;
  }
  return refused;
}

TempFolder::~TempFolder() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::string> PlacesForResultOf(const std::string& trace_path) {
  const std::string folder = std::filesystem::path(trace_path).parent_path().string();
  return {Environment("TMPDIR"), Environment("XDG_CACHE_HOME"), folder.empty() ? "." : folder,
          "/var/tmp"};
}

}  // namespace blktape
