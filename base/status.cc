#include "base/status.h"

#include <cerrno>
#include <cstring>

namespace blktape {
namespace {

StatusCode CodeOf(int err) {
  switch (err) {
    case EACCES:
    case EPERM:
      return StatusCode::kPermissionDenied;
    case ENOENT:
    case ENODEV:
    case ENXIO:
      return StatusCode::kNotFound;
    case EEXIST:
      return StatusCode::kAlreadyExists;
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return StatusCode::kResourceExhausted;
    case EBUSY:
      return StatusCode::kFailedPrecondition;
    case ENOSYS:
    case EOPNOTSUPP:
      return StatusCode::kUnavailable;
    default:
      return StatusCode::kIoError;
  }
}

}  // namespace

const std::string& Status::message() const {
  static const std::string none;
  return ok() ? none : failure_->message;
}

Status ErrnoStatus(int err, std::string_view what) {
  return Status(CodeOf(err), std::string(what) + ": " + std::strerror(err));
}

}  // namespace blktape
