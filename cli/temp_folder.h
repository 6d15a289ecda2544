#pragma once

#include <string>
#include <utility>

#include "base/status.h"

namespace blktape {

// A private folder in $TMPDIR (else /tmp), removed with its content when the object ends.
class TempFolder {
 public:
  static Result<TempFolder> Create();
  TempFolder(TempFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TempFolder& operator=(TempFolder&&) = delete;
  ~TempFolder();
  const std::string& path() const { return path_; }

 private:
  explicit TempFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace blktape
