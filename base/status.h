#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace blktape {

enum class StatusCode {
  kOk,
  kInvalidArgument,     // the caller asked for something that makes no sense
  kNotFound,            // a file, device or process is not there
  kAlreadyExists,       // would overwrite
  kPermissionDenied,    // rights are missing
  kFailedPrecondition,  // refused: the state of a device or file forbids it (mounted, too small,
                        // busy)
  kUnavailable,         // this kernel or machine lacks the facility
  kUnimplemented,       // newer format version, unknown kind
  kDataLoss,            // input is damaged beyond what can be skipped
  kResourceExhausted,   // no space, no memory, too many files
  kCancelled,           // the user stopped it
  kIoError,             // the system refused a read, write or ioctl
};

// The outcome of a call that can fail for reasons outside the program. Copyable, thread-compatible.
// It is one pointer, null when ok, because it is returned for every record through several
// functions.
class [[nodiscard]] Status {
 public:
  Status() = default;  // ok
  Status(StatusCode code, std::string message) {
    if (code != StatusCode::kOk) failure_.reset(new Failure{code, std::move(message)});
  }
  Status(const Status& other) : failure_(other.Copied()) {}
  Status(Status&&) = default;
  Status& operator=(const Status& other) {
    if (this != &other) failure_ = other.Copied();
    return *this;
  }
  Status& operator=(Status&&) = default;
  ~Status() = default;

  bool ok() const { return failure_ == nullptr; }
  StatusCode code() const { return ok() ? StatusCode::kOk : failure_->code; }
  // What failed, with path, offset and reason; empty when ok. May have more lines ("try: ...").
  const std::string& message() const;

 private:
  struct Failure {
    StatusCode code;
    std::string message;
  };
  std::unique_ptr<const Failure> Copied() const {
    return ok() ? nullptr : std::make_unique<const Failure>(*failure_);
  }

  std::unique_ptr<const Failure> failure_;
};

inline Status OkStatus() { return Status(); }

// "`what`: strerror(err)" with the code that fits `err` (EACCES, EPERM: kPermissionDenied, ENOENT,
// ENODEV, ENXIO: kNotFound, EEXIST: kAlreadyExists, ENOSPC, EDQUOT, ENOMEM, EMFILE:
// kResourceExhausted, EBUSY: kFailedPrecondition, ENOSYS, EOPNOTSUPP: kUnavailable; else kIoError).
Status ErrnoStatus(int err, std::string_view what);

// A value, or the reason why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT: implicit, so that `return value;` works
  Result(Status status) : status_(std::move(status)) {  // NOLINT: likewise
    BLKTAPE_CHECK(!status_.ok());
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & {
    BLKTAPE_CHECK(ok());
    return *value_;
  }
  const T& value() const& {
    BLKTAPE_CHECK(ok());
    return *value_;
  }
  T&& value() && {
    BLKTAPE_CHECK(ok());
    return *std::move(value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace blktape

// Return early on failure.
#define BLKTAPE_CONCAT_(a, b) a##b
#define BLKTAPE_CONCAT(a, b) BLKTAPE_CONCAT_(a, b)
#define RETURN_IF_ERROR(expression)                                                \
  do {                                                                             \
    if (::blktape::Status blktape_status_ = (expression); !blktape_status_.ok()) { \
      return blktape_status_;                                                      \
    }                                                                              \
  } while (false)
#define ASSIGN_OR_RETURN(target, expression) \
  ASSIGN_OR_RETURN_(target, expression, BLKTAPE_CONCAT(blktape_result_, __LINE__))
#define ASSIGN_OR_RETURN_(target, expression, result) \
  auto result = (expression);                         \
  if (!result.ok()) return result.status();           \
  target = std::move(result).value()
