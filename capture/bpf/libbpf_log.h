#pragma once

#include <string>

namespace blktape {

// From now on collects libbpf's messages instead of printing them to stderr; they explain why the
// kernel refused a program. libbpf has one print function per process, so this log is global too.
void BeginLibbpfLog();
// The last lines since then. The verifier's verdict is at the end of a long log.
const std::string& LibbpfLog();

}  // namespace blktape
