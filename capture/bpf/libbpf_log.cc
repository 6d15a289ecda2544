#include "capture/bpf/libbpf_log.h"

#include <bpf/libbpf.h>

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <vector>

namespace blktape {
namespace {

constexpr size_t kKeptBytes = 2048;

std::string& Log() {
  static std::string log;
  return log;
}

__attribute__((format(printf, 2, 0))) int KeepLog(enum libbpf_print_level level, const char* format,
                                                  va_list arguments) {
  if (level == LIBBPF_DEBUG) return 0;
  std::vector<char> line(1 << 16);
  const int length = std::vsnprintf(line.data(), line.size(), format, arguments);
  Log() += line.data();
  if (Log().size() > kKeptBytes) Log().erase(0, Log().size() - kKeptBytes);
  return length;
}

}  // namespace

void BeginLibbpfLog() {
  Log().clear();
  libbpf_set_print(&KeepLog);
}

const std::string& LibbpfLog() { return Log(); }

}  // namespace blktape
