#include "base/new_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <span>
#include <system_error>

namespace blktape {
namespace {

constexpr char kUnfinished[] = ".XXXXXX.new";
constexpr int kSuffixBytes = sizeof(".new") - 1;

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// By this a file without a name is given one; linkat() of the descriptor itself takes a capability.
std::string ProcPath(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

// A file without a name in `folder`; none if it could not be had or given a name later.
UniqueFd OpenUnnamed(const std::string& folder) {
  UniqueFd fd(open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  struct stat info{};
  if (!fd || stat(ProcPath(fd.get()).c_str(), &info) != 0) return {};
  return fd;
}

int Link(int fd, const std::string& path) {
  return linkat(AT_FDCWD, ProcPath(fd).c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW);
}

}  // namespace

Status CheckNewName(const std::string& path) {
  std::error_code error;
  // A link that leads nowhere is a name as well.
  if (std::filesystem::exists(std::filesystem::symlink_status(path, error))) {
    return Status(StatusCode::kAlreadyExists, path + " exists; nothing is overwritten");
  }
  const std::string folder = FolderOf(path);
  struct stat info{};
  if (stat(folder.c_str(), &info) != 0) return ErrnoStatus(errno, path);
  if (!S_ISDIR(info.st_mode)) return ErrnoStatus(ENOTDIR, path);
  if (faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    return ErrnoStatus(errno, path);
  return OkStatus();
}

Result<NewFile> NewFile::Open(const std::string& path) {
  NewFile file(path);
  file.fd_ = OpenUnnamed(FolderOf(path));
  if (file.fd_) return file;
  std::string name = path + kUnfinished;
  file.fd_.reset(mkostemps(name.data(), kSuffixBytes, O_CLOEXEC));
  if (!file.fd_) return ErrnoStatus(errno, path);
  file.made_ = name;
  return file;
}

Result<NewFile> NewFile::Create(const std::string& path) {
  RETURN_IF_ERROR(CheckNewName(path));
  return Open(path);
}

Result<NewFile> NewFile::CreateVersionOf(const std::string& path) { return Open(path); }

NewFile::NewFile(NewFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::move(other.fd_)),
      made_(std::exchange(other.made_, {})) {}

NewFile::~NewFile() {
  if (!made_.empty()) unlink(made_.c_str());
}

Result<std::unique_ptr<ByteSink>> NewFile::Sink() const {
  UniqueFd fd(fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!fd) return ErrnoStatus(errno, path_);
  return SinkTo(std::move(fd), path_);
}

Status NewFile::Sync() const {
  if (fsync(fd_.get()) != 0 && errno != EINVAL) return ErrnoStatus(errno, path_ + ": fsync");
  return OkStatus();
}

Status NewFile::GiveName() {
  RETURN_IF_ERROR(Sync());
  if (made_.empty()) {
    if (Link(fd_.get(), path_) != 0) return ErrnoStatus(errno, path_);
    return SyncFolderOf(path_);
  }
  RETURN_IF_ERROR(RenameDurably(made_, path_));
  made_.clear();
  return OkStatus();
}

Status NewFile::Replace() {
  RETURN_IF_ERROR(Sync());
  if (made_.empty()) {
    // A name that was free a moment ago: link() itself refuses one that is taken.
    std::string name = path_ + kUnfinished;
    const UniqueFd probe(mkostemps(name.data(), kSuffixBytes, O_CLOEXEC));
    if (!probe) return ErrnoStatus(errno, path_);
    unlink(name.c_str());
    if (Link(fd_.get(), name) != 0) return ErrnoStatus(errno, path_);
    made_ = name;
  }
  if (rename(made_.c_str(), path_.c_str()) != 0) return ErrnoStatus(errno, path_);
  made_.clear();
  return SyncFolderOf(path_);
}

Status WriteNewFile(const std::string& path, std::string_view text) {
  ASSIGN_OR_RETURN(NewFile file, NewFile::Create(path));
  ASSIGN_OR_RETURN(const std::unique_ptr<ByteSink> sink, file.Sink());
  RETURN_IF_ERROR(sink->Write(std::as_bytes(std::span(text))));
  return file.GiveName();
}

Status WriteNewFolder(const std::string& path,
                      const std::vector<std::pair<std::string, std::string>>& files) {
  RETURN_IF_ERROR(CheckNewName(path));
  std::string folder = path + ".new.XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return ErrnoStatus(errno, path);
  std::vector<std::string> made;
  const Status written = [&]() -> Status {
    for (const auto& [name, text] : files) {
      const std::string file = folder + "/" + name;
      RETURN_IF_ERROR(WriteNewFile(file, text));
      made.push_back(file);
    }
    return RenameDurably(folder, path);
  }();
  if (written.ok()) return written;
  for (const std::string& file : made) unlink(file.c_str());
  rmdir(folder.c_str());
  return written;
}

}  // namespace blktape
