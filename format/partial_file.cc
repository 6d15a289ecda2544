#include "format/partial_file.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

namespace blktape {

std::string PartialPath(const std::string& path) { return path + std::string(kPartialSuffix); }

bool IsBeingWritten(const std::string& path) {
  return LockFile(path).status().code() == StatusCode::kFailedPrecondition;
}

Result<PartialFile> PartialFile::Create(const std::string& path) {
  std::error_code error;
  // A folder that is closed to us hides its files, and takes none. A link that leads nowhere is a
  // name as well.
  if (std::filesystem::exists(std::filesystem::symlink_status(path, error))) {
    return Status(StatusCode::kAlreadyExists, path + " exists; nothing is ever overwritten");
  }
  const std::string partial_path = PartialPath(path);
  Result<UniqueFd> fd = CreateLocked(partial_path);
  if (fd.status().code() == StatusCode::kAlreadyExists) {
    return Status(StatusCode::kAlreadyExists,
                  partial_path +
                      " exists: its writer is at work or has died\n  try:  another name, or: "
                      "blktape recover " +
                      partial_path);
  }
  RETURN_IF_ERROR(fd.status());
  return PartialFile(*std::move(fd), path);
}

void PartialFile::Remove() const { unlink(partial_path_.c_str()); }

Status PartialFile::GiveName() const {
  if (fsync(fd_.get()) != 0 && errno != EINVAL) return ErrnoStatus(errno, partial_path_);
  return RenameDurably(partial_path_, path_);
}

}  // namespace blktape
