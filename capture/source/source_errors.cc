#include "capture/source/source_errors.h"

#include <unistd.h>

#include "base/file.h"

namespace blktape {

std::string LockdownLevel() {
  // "none [integrity] confidentiality"
  const Result<std::string> text = ReadAttribute("/sys/kernel/security/lockdown");
  if (!text.ok()) return "";
  const size_t open = text->find('[');
  const size_t close = text->find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return "";
  return text->substr(open + 1, close - open - 1);
}

Status ExplainSourceFailure(const Status& status, std::string_view facility) {
  std::string message = std::string(facility) + ": " + status.message();
  const std::string level = LockdownLevel();
  switch (status.code()) {
    case StatusCode::kPermissionDenied:
    case StatusCode::kIoError:
      if (geteuid() != 0) {
        message +=
            "\n  recording reads the kernel's block events, which takes root's rights"
            "\n  try:  sudo blktape record ...";
      } else if (level == "confidentiality") {
        // tracefs says so by EINVAL.
        message +=
            "\n  this kernel is in lockdown (confidentiality): it shows its events to BPF alone"
            "\n  try:  --source=bpf, or booting with lockdown=integrity";
        return Status(StatusCode::kPermissionDenied, message);
      } else if (status.code() == StatusCode::kIoError) {
        break;
      } else if (facility == "blktrace" && level != "none") {
        message += "\n  this kernel" +
                   (level.empty() ? std::string(" is probably in lockdown")
                                  : " is in lockdown (" + level + ")") +
                   ", as with Secure Boot: it refuses blktrace's buffers"
                   "\n  try:  --source=tracefs, which works there";
      } else {
        message +=
            "\n  root lacks a capability here, as in a container"
            "\n  try:  outside of the container, or with CAP_SYS_ADMIN";
      }
      break;
    case StatusCode::kNotFound:
    case StatusCode::kUnavailable:
      message += facility == "tracefs"
                     ? "\n  the kernel needs CONFIG_FTRACE, CONFIG_EVENT_TRACING and CONFIG_BLOCK"
                     : "\n  the kernel needs CONFIG_BLK_DEV_IO_TRACE and CONFIG_DEBUG_FS";
      return Status(StatusCode::kUnavailable, message);
    default:
      break;
  }
  return Status(status.code(), message);
}

}  // namespace blktape
