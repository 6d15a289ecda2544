#include "format/recover.h"

#include <cstdio>
#include <filesystem>

#include "base/file.h"
#include "format/trace_copier.h"

namespace blktape {

Result<RecoverReport> RecoverTrace(const std::string& from_path, const std::string& to_path,
                                   const TraceWriterOptions& options) {
  // Held to the end, so that neither a recorder nor a second recovery works on the file.
  ASSIGN_OR_RETURN(const UniqueFd lock, LockFile(from_path));
  std::error_code error;
  // A folder that is closed to us hides its files, and takes none.
  if (std::filesystem::exists(std::filesystem::symlink_status(to_path, error))) {
    return Status(StatusCode::kAlreadyExists, to_path + ": exists; nothing is overwritten");
  }
  const std::string unnamed_path = to_path + ".recovering";
  std::remove(unnamed_path.c_str());  // of a recovery that died; its input is still there
  Result<RewriteReport> report = RewriteTrace(from_path, unnamed_path, options);
  Status status = report.ok() ? RenameDurably(unnamed_path, to_path) : report.status();
  if (!status.ok()) {
    std::remove(unnamed_path.c_str());
    return status;
  }
  return report;
}

}  // namespace blktape
