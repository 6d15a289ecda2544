#pragma once

#include <string>

namespace blktape {

// Gathers what libbpf prints from here on, instead of letting it go to stderr: what a refusal is
// explained with. libbpf's printer is one a process, and so is this.
void BeginLibbpfLog();
// The last lines since then: the verifier's verdict stands at the end of a long log.
const std::string& LibbpfLog();

}  // namespace blktape
