#include "capture/source_errors.h"

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
  switch (status.code()) {
    case StatusCode::kPermissionDenied: {
      const std::string level = LockdownLevel();
      if (geteuid() != 0) {
        message +=
            "\n  recording reads the kernel's block events, which takes root's rights"
            "\n  try:  sudo blktape record ...";
      } else if (facility == "blktrace" && level != "none") {
        message += "\n  this kernel" +
                   (level.empty() ? std::string(" is probably in lockdown")
                                  : " is in lockdown (" + level + ")") +
                   ", as with Secure Boot: it refuses blktrace's buffers"
                   "\n  try:  --source=tracefs, which works there";
      } else if (level == "confidentiality") {
        message +=
            "\n  this kernel is in lockdown (confidentiality): it lets nobody see its"
            " events\n  try:  booting with lockdown=integrity, or without lockdown=";
      } else {
        message +=
            "\n  root lacks a capability here, as in a container"
            "\n  try:  outside of the container, or with CAP_SYS_ADMIN";
      }
      break;
    }
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
