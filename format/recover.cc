#include "format/recover.h"

#include "base/file.h"
#include "format/trace_copier.h"

namespace blktape {

Result<RecoverReport> RecoverTrace(const std::string& from_path, const std::string& to_path,
                                   const TraceWriterOptions& options) {
  // Held to the end, so that neither a recorder nor a second recovery works on the file.
  ASSIGN_OR_RETURN(const UniqueFd lock, LockFile(from_path));
  return RewriteTrace(from_path, to_path, options);
}

}  // namespace blktape
