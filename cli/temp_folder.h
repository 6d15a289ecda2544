#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace blktape {

// A private folder, removed with its content when the object ends.
class TempFolder {
 public:
  // In the first of `places` where a folder can be made. kResourceExhausted if less than
  // `least_free_bytes` are free there: the message names the place. Places that are empty are left
  // out.
  static Result<TempFolder> Create(const std::vector<std::string>& places,
                                   uint64_t least_free_bytes);
  TempFolder(TempFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TempFolder& operator=(TempFolder&&) = delete;
  ~TempFolder();
  const std::string& path() const { return path_; }

 private:
  explicit TempFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Where a result that nobody keeps is put: $TMPDIR, $XDG_CACHE_HOME, the folder of the trace,
// /var/tmp. Not /tmp: it is often memory, and a result may be as large as the trace.
std::vector<std::string> PlacesForResultOf(const std::string& trace_path);

}  // namespace blktape
