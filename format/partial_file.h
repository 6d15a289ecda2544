#pragma once

#include <string>
#include <string_view>

#include "base/file.h"
#include "base/status.h"

namespace blktape {

// What a trace is called while it is being written: PATH.partial.
inline constexpr std::string_view kPartialSuffix = ".partial";
std::string PartialPath(const std::string& path);

// Whether somebody is writing the .partial at `path` now, in whatever process.
bool IsBeingWritten(const std::string& path);

// The file of a trace from its first byte until it has its name. It is called PATH.partial and
// locked (flock), by which IsBeingWritten and recovery tell one that is being written from one
// whose writer has died. Without GiveName the .partial stays. Not thread-safe.
class PartialFile {
 public:
  // kAlreadyExists if `path` or its .partial exists; then nothing is touched. Mode 0600.
  static Result<PartialFile> Create(const std::string& path);

  // Where to write; open as long as this lives.
  int fd() const { return fd_.get(); }
  const std::string& path() const { return partial_path_; }

  // Makes the name PATH.partial durable: without it nothing written would survive a power loss.
  Status SyncName() const { return SyncFolderOf(partial_path_); }
  // For a file that holds nothing of worth: it goes.
  void Remove() const;
  // All that was written is on stable storage, and the file is called PATH. kAlreadyExists, and it
  // stays a .partial, if somebody has taken that name meanwhile. The lock goes with this object, so
  // that nobody takes it for a dead writer's in between.
  Status GiveName() const;

 private:
  PartialFile(UniqueFd fd, std::string path)
      : fd_(std::move(fd)), path_(std::move(path)), partial_path_(PartialPath(path_)) {}

  UniqueFd fd_;
  std::string path_;
  std::string partial_path_;
};

}  // namespace blktape
