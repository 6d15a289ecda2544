#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "capture/source/capture_source.h"
#include "capture/source/live_source.h"

namespace blktape {

struct SourceRequest {
  std::string kind = "auto";  // auto or one of LiveSourceNames()
  std::vector<Disk> devices;
  uint64_t buffer_bytes_per_cpu = 0;  // 0: sized to the machine
};

struct StartedSource {
  std::unique_ptr<LiveSource> source;
  // Why those that come before it do not work here, a line or more each; "auto" only.
  std::vector<std::string> refused;
};

// "bpf", "tracefs", ... in the order auto tries them.
std::vector<std::string> LiveSourceNames();

// Starts the source asked for, or the first that works on this machine. Where none does, the
// message says of each why, and what to do.
Result<StartedSource> StartLiveSource(const SourceRequest& request);

}  // namespace blktape
