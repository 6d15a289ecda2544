#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/byte_stream.h"
#include "base/status.h"

namespace blktape {

// Owns a file descriptor; -1 is none.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

// A file opened for reading; "-" is standard input. Messages name the path.
Result<std::unique_ptr<ByteSource>> OpenForReading(const std::string& path);

// Copies the rest of `source` into a file without a name in `folder`, gone when it is closed, and
// reads that from its start: what makes a pipe seekable.
Result<std::unique_ptr<ByteSource>> Spool(ByteSource* source, const std::string& folder);

// A new file, mode 0600, locked (flock) as long as the sink lives. kAlreadyExists if `path` exists:
// nothing is ever overwritten.
Result<std::unique_ptr<ByteSink>> CreateFile(const std::string& path);

// Opens `path` and locks it (flock) until the descriptor is closed. kFailedPrecondition if somebody
// has locked it: a sink of CreateFile that still lives, in whatever process.
Result<UniqueFd> LockFile(const std::string& path);

// The whole of a small file (a sysfs or procfs attribute too).
Result<std::string> ReadFile(const std::string& path);

// A sysfs or procfs attribute without the white space around it.
Result<std::string> ReadAttribute(const std::string& path);

// Writes `text` to an existing file in one write() (a sysfs, procfs or tracefs attribute).
Status WriteAttribute(const std::string& path, std::string_view text);

// Gives `from` the name `to`, durably (the folder is synced), and fails with kAlreadyExists rather
// than replace.
Status RenameDurably(const std::string& from, const std::string& to);

// Gives the file `path` this content, at once: after a crash it has the old or the new one. It is
// written under a name of its own beside it, mode 0600, so that nobody else's file is touched;
// where `path` is a symbolic link, the link is replaced.
Status ReplaceFile(const std::string& path, std::string_view text);

// Makes removals and new names in the folder of `path` durable.
Status SyncFolderOf(const std::string& path);

}  // namespace blktape
