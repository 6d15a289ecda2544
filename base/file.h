#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/byte_stream.h"
#include "base/status.h"

namespace blktape {

// Owns a file descriptor; -1 means none.
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

// Copies the rest of `source` into an unnamed temporary file in `folder` and reads that file from
// its start. This makes a pipe seekable. The file disappears when the source is destroyed.
Result<std::unique_ptr<ByteSource>> Spool(ByteSource* source, const std::string& folder);

// Creates a file with mode 0600, locked (flock) until the last copy of the descriptor is closed.
// kAlreadyExists if `path` exists: no file is ever overwritten.
Result<UniqueFd> CreateLocked(const std::string& path);
// The same, as a sink; the file is locked while the sink exists.
Result<std::unique_ptr<ByteSink>> CreateFile(const std::string& path);
// A sink that writes to `fd` from its current position. `name` is its name in messages.
std::unique_ptr<ByteSink> SinkTo(UniqueFd fd, const std::string& name);

// Opens `path` and locks it (flock) until the descriptor is closed. kFailedPrecondition if it is
// locked already, for example by CreateLocked, in any process.
Result<UniqueFd> LockFile(const std::string& path);

// The whole content of a small file, or of a sysfs or procfs attribute.
Result<std::string> ReadFile(const std::string& path);

// The content of a sysfs or procfs attribute, without surrounding white space.
Result<std::string> ReadAttribute(const std::string& path);

// Writes `text` to an existing file in one write() (a sysfs, procfs or tracefs attribute).
Status WriteAttribute(const std::string& path, std::string_view text);

// Renames `from` to `to` durably (the folder is synced). Fails with kAlreadyExists if `to` exists.
Status RenameDurably(const std::string& from, const std::string& to);

// Replaces the content of the file `path` atomically: after a crash it has the old content or the
// new one. The new content is first written to a file with a unique name in the same folder, mode
// 0600, so that no other file is touched. If `path` is a symbolic link, the link is replaced.
Status ReplaceFile(const std::string& path, std::string_view text);

// Makes removals and new names in the folder of `path` durable.
Status SyncFolderOf(const std::string& path);

}  // namespace blktape
