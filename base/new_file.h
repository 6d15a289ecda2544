#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_stream.h"
#include "base/file.h"
#include "base/status.h"

namespace blktape {

// A file that has its name only when it is whole. Before, it has no name where the file system can
// do so (O_TMPFILE), and is gone however the process ends. Elsewhere it is called PATH.??????.new,
// which a process that is killed leaves behind. Without GiveName or Replace it is removed, and so
// is nothing that this object has not made itself. Not thread-safe.
class NewFile {
 public:
  // kAlreadyExists if something has this name: nothing is ever overwritten. Mode 0600.
  static Result<NewFile> Create(const std::string& path);
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  // Writes to the file; may outlive it.
  Result<std::unique_ptr<ByteSink>> Sink() const;
  // All that was written is on stable storage, and the file is called PATH. kAlreadyExists if
  // somebody has taken that name meanwhile.
  Status GiveName();

  // For a new version of the file `path`: as Create, but `path` exists, and is replaced by Replace,
  // at once, in place of GiveName.
  static Result<NewFile> CreateVersionOf(const std::string& path);
  Status Replace();

 private:
  explicit NewFile(std::string path) : path_(std::move(path)) {}
  static Result<NewFile> Open(const std::string& path);
  Status Sync() const;

  std::string path_;
  UniqueFd fd_;
  std::string made_;  // its name by now; empty: it has none
};

// Whether a file or folder `path` can be made: told before work that takes long.
// kAlreadyExists if something has this name.
Status CheckNewName(const std::string& path);

// Makes the file `path` of this content, as NewFile does.
Status WriteNewFile(const std::string& path, std::string_view text);

// Makes the folder `path` with files of these names and texts, which has its name only when all of
// it is there. Modes 0700 and 0600. kAlreadyExists as in NewFile.
Status WriteNewFolder(const std::string& path,
                      const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace blktape
