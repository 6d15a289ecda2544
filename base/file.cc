#include "base/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <vector>

namespace blktape {
namespace {

class FileSource : public ByteSource {
 public:
  FileSource(UniqueFd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}

  Result<size_t> Read(std::span<std::byte> buffer) override {
    while (true) {
      const ssize_t got = read(fd_.get(), buffer.data(), buffer.size());
      if (got >= 0) {
        position_ += static_cast<uint64_t>(got);
        return static_cast<size_t>(got);
      }
      if (errno != EINTR) {
        return ErrnoStatus(errno, name_ + ": read at offset " + std::to_string(position_));
      }
    }
  }

  Status Seek(uint64_t offset) override {
    if (lseek(fd_.get(), static_cast<off_t>(offset), SEEK_SET) < 0) {
      if (errno == ESPIPE) return Status(StatusCode::kUnimplemented, name_ + ": cannot seek");
      return ErrnoStatus(errno, name_ + ": seek to offset " + std::to_string(offset));
    }
    position_ = offset;
    return OkStatus();
  }

  std::optional<uint64_t> size_bytes() const override {
    struct stat info{};
    if (fstat(fd_.get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
    return static_cast<uint64_t>(info.st_size);
  }

  std::string_view name() const override { return name_; }

 private:
  UniqueFd fd_;
  std::string name_;
  uint64_t position_ = 0;
};

class FileSink : public ByteSink {
 public:
  FileSink(UniqueFd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}

  Status Write(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t put = write(fd_.get(), bytes.data(), bytes.size());
      if (put < 0) {
        if (errno == EINTR) continue;
        return ErrnoStatus(errno, name_ + ": write at offset " + std::to_string(position_));
      }
      position_ += static_cast<uint64_t>(put);
      bytes = bytes.subspan(static_cast<size_t>(put));
    }
    return OkStatus();
  }

  Status Sync() override {
    if (fdatasync(fd_.get()) != 0 && errno != EINVAL)
      return ErrnoStatus(errno, name_ + ": fdatasync");
    return OkStatus();
  }

  std::string_view name() const override { return name_; }

 private:
  UniqueFd fd_;
  std::string name_;
  uint64_t position_ = 0;
};

}  // namespace

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

Result<std::unique_ptr<ByteSource>> OpenForReading(const std::string& path) {
  if (path == "-") {
    UniqueFd fd(dup(STDIN_FILENO));
    if (!fd) return ErrnoStatus(errno, "standard input");
    return std::unique_ptr<ByteSource>(
        std::make_unique<FileSource>(std::move(fd), "standard input"));
  }
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return ErrnoStatus(errno, path);
  struct stat info{};
  if (fstat(fd.get(), &info) == 0 && S_ISDIR(info.st_mode)) return ErrnoStatus(EISDIR, path);
  return std::unique_ptr<ByteSource>(std::make_unique<FileSource>(std::move(fd), path));
}

Result<std::unique_ptr<ByteSource>> Spool(ByteSource* source, const std::string& folder) {
  const std::string name = folder + ": temporary file";
  UniqueFd fd(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd) return ErrnoStatus(errno, name);
  UniqueFd writing(dup(fd.get()));
  if (!writing) return ErrnoStatus(errno, name);
  FileSink sink(std::move(writing), name);
  std::vector<std::byte> buffer(1 << 20);
  while (true) {
    ASSIGN_OR_RETURN(const size_t count, source->Read(buffer));
    if (count == 0) break;
    RETURN_IF_ERROR(sink.Write(std::span(buffer).first(count)));
  }
  auto spooled = std::make_unique<FileSource>(std::move(fd), std::string(source->name()));
  RETURN_IF_ERROR(spooled->Seek(0));
  return std::unique_ptr<ByteSource>(std::move(spooled));
}

Result<UniqueFd> CreateLocked(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return ErrnoStatus(errno, path);
  // Some network file systems have no locks; the file is usable without one.
  (void)flock(fd.get(), LOCK_EX | LOCK_NB);
  return fd;
}

Result<std::unique_ptr<ByteSink>> CreateFile(const std::string& path) {
  ASSIGN_OR_RETURN(UniqueFd fd, CreateLocked(path));
  return SinkTo(std::move(fd), path);
}

std::unique_ptr<ByteSink> SinkTo(UniqueFd fd, const std::string& name) {
  return std::make_unique<FileSink>(std::move(fd), name);
}

Result<UniqueFd> LockFile(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return ErrnoStatus(errno, path);
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return Status(StatusCode::kFailedPrecondition, path + ": another process is at work on it");
  }
  return fd;
}

Result<std::string> ReadFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, OpenForReading(path));
  std::string text;
  std::byte buffer[4096];
  while (true) {
    ASSIGN_OR_RETURN(const size_t count, source->Read(buffer));
    if (count == 0) return text;
    text.append(reinterpret_cast<const char*>(buffer), count);
  }
}

Result<std::string> ReadAttribute(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  constexpr std::string_view kBlank = " \t\n";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string::npos) return std::string();
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

Status WriteAttribute(const std::string& path, std::string_view text) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return ErrnoStatus(errno, path);
  if (write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return ErrnoStatus(errno, path + ": writing \"" + std::string(text) + "\"");
  }
  return OkStatus();
}

namespace {

// Not by the number alone: a file system in user space may give one to all its files.
bool AreOneFile(const std::string& one, const std::string& other) {
  struct stat first{};
  struct stat second{};
  return lstat(one.c_str(), &first) == 0 && lstat(other.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino && first.st_nlink > 1;
}

// A second name replaces nothing, either. One that is there already may be ours: NFS answers so
// where it had to ask its server twice.
Status RenameByLink(const std::string& from, const std::string& to) {
  if (link(from.c_str(), to.c_str()) == 0 || (errno == EEXIST && AreOneFile(from, to))) {
    return unlink(from.c_str()) == 0 ? OkStatus() : ErrnoStatus(errno, from);
  }
  if (errno == EEXIST) return ErrnoStatus(errno, to);
  // Not even that: whoever makes a file of this name right after the look loses it.
  struct stat there{};
  if (lstat(to.c_str(), &there) == 0) return ErrnoStatus(EEXIST, to);
  return rename(from.c_str(), to.c_str()) == 0 ? OkStatus() : ErrnoStatus(errno, to);
}

}  // namespace

Status RenameDurably(const std::string& from, const std::string& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) != 0) {
    const bool unknown = errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP;
    if (!unknown) return ErrnoStatus(errno, to);
    RETURN_IF_ERROR(RenameByLink(from, to));
  }
  return SyncFolderOf(to);
}

Status ReplaceFile(const std::string& path, std::string_view text) {
  std::string fresh = path + ".XXXXXX.new";
  UniqueFd fd(mkostemps(fresh.data(), sizeof ".new" - 1, O_CLOEXEC));
  if (!fd) return ErrnoStatus(errno, fresh);
  FileSink sink(std::move(fd), fresh);
  Status status = sink.Write(std::as_bytes(std::span(text)));
  if (status.ok()) status = sink.Sync();
  if (status.ok() && rename(fresh.c_str(), path.c_str()) != 0) status = ErrnoStatus(errno, path);
  if (!status.ok()) unlink(fresh.c_str());
  return status;
}

Status SyncFolderOf(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // EINVAL: the file system does not sync folders.
  if (!fd || (fsync(fd.get()) != 0 && errno != EINVAL))
    return ErrnoStatus(errno, folder + ": sync");
  return OkStatus();
}

}  // namespace blktape
